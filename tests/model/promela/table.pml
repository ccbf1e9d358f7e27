/* The moves that the database lets through: made from publisher/engine/transitions.py. */
#define MAY(a, b) ( \
	(a == CANCELLED && b == SCHEDULED) || \
	(a == CLAIMED && b == CANCELLED) || \
	(a == CLAIMED && b == FAILED) || \
	(a == CLAIMED && b == MISSED) || \
	(a == CLAIMED && b == PUBLISHED) || \
	(a == CLAIMED && b == SCHEDULED) || \
	(a == CLAIMED && b == SENDING) || \
	(a == CLAIMED && b == UNKNOWN) || \
	(a == DROPPED && b == PUBLISHED) || \
	(a == FAILED && b == PUBLISHED) || \
	(a == FAILED && b == SCHEDULED) || \
	(a == FAILED && b == UNKNOWN) || \
	(a == MISSED && b == PUBLISHED) || \
	(a == MISSED && b == SCHEDULED) || \
	(a == MISSED && b == UNKNOWN) || \
	(a == SCHEDULED && b == CANCELLED) || \
	(a == SCHEDULED && b == CLAIMED) || \
	(a == SCHEDULED && b == MISSED) || \
	(a == SCHEDULED && b == PUBLISHED) || \
	(a == SCHEDULED && b == UNKNOWN) || \
	(a == SENDING && b == FAILED) || \
	(a == SENDING && b == PUBLISHED) || \
	(a == SENDING && b == SCHEDULED) || \
	(a == SENDING && b == UNKNOWN) || \
	(a == UNKNOWN && b == DROPPED) || \
	(a == UNKNOWN && b == FAILED) || \
	(a == UNKNOWN && b == PUBLISHED) || \
	(a == UNKNOWN && b == SCHEDULED))
