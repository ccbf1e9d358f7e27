/*
 * The publish protocol, one post on one channel, for Spin.
 *
 * Written from the design and the statements of the ledger, apart from the Python model beside it,
 * so that a mistake in one is not repeated in the other. See docs/model-promela.md for what is
 * modelled, what is left out, and how to replay a trail.
 *
 * Every database statement is one atomic step, but for the begin, whose commit may come after its
 * client has gone. Everything else that can be interrupted is a step of its own. A frozen process
 * is one that is not scheduled; a dead one has its flag up. Nothing here has a clock: a lease may
 * run out at any moment, a deadline may have passed at any moment, and a horizon is over when what
 * was written has landed (HORIZON below), which is what the word means.
 */

/* The platform: what a look shows, and what a repeat means. */
#define LISTED 1 /* its listing is whole: what is not in it is not there */
#define PAGED 2  /* its listing may leave a post out: absence proves nothing */
#define BLIND 3  /* it shows nothing; a person looks */
#define KEYED 4  /* as LISTED, and a second post under the same key is the first, for ever */
#define LAPSING 5 /* its listing may leave a post out, and it knows a key for a while */

#ifndef PLATFORM
#define PLATFORM LISTED
#endif
#ifndef TOKENS
#define TOKENS 3 /* claims */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef CUTS
#define CUTS 1 /* connections to the database that break */
#endif
#ifndef DRAINS
#define DRAINS 0 /* workers told to stop while a hand is busy */
#endif
#ifndef EDITS
#define EDITS 0 /* acts of editors and operators */
#endif
#ifndef LOOKS
#define LOOKS 2 /* by the reconciler */
#endif
#ifndef WORDS
#define WORDS 1 /* verdicts by people */
#endif
#ifndef PEOPLE
#define PEOPLE 1
#endif
#ifndef RESTORES
#define RESTORES 0 /* the database goes back to an earlier moment */
#endif
#define RUNS 2 /* worker runs: each lives once */

#define CAN_LOOK (PLATFORM != BLIND)
#define IS_WHOLE (PLATFORM == LISTED || PLATFORM == KEYED)
#define HIDES (PLATFORM == PAGED || PLATFORM == LAPSING)
#define HAS_KEY (PLATFORM == KEYED || PLATFORM == LAPSING)

/* States of a job. */
#define SCHEDULED 0
#define CLAIMED 1
#define SENDING 2
#define PUBLISHED 3
#define FAILED 4
#define UNKNOWN 5
#define MISSED 6
#define CANCELLED 7
#define DROPPED 8
#include "table.pml"

/* Outcomes of a claim; those from PUB on are of a send. */
#define RELEASE 1
#define UNCLEAR 2 /* what a look showed, or the end of a key: nobody sends */
#define FOUND 3
#define PUB 4
#define SURE_NOT 5 /* no byte was written */
#define REFUSED 6  /* by the closed list */
#define DOUBT 7
#define DRAINED 8

/* Proofs that a further send is allowed. */
#define NOT_SENT 1
#define BY_LIST 2
#define ABSENT 3
#define REPEAT 4

/* How an attempt came to its end, as the journal says. */
#define BY_RESCUE 1
#define BY_DRAIN 2
#define BY_HAND 3

/* A request. */
#define FLIGHT 1
#define SAYS_OK 2
#define SAYS_NO 3
#define SAYS_500 4
#define OVER 0 /* nobody is waiting, or it is answered */

/* A hand. */
#define ORDERED 1
#define LET 2 /* the permit is used, nothing is written yet */
#define WAITING 3
#define TOLD 4

/* A file, and what it says of a token. */
#define WHOLE 1
#define TORN 2 /* its machine was restarted: a missing line proves nothing */

/* ------------------------------------------------------------------------------------------- */
/* The database. All of it goes back in a restore. */

byte st = SCHEDULED;
byte tok;         /* 0: nobody holds it */
byte num;         /* attempts begun */
byte since;       /* which doubt this is */
bool held;        /* in quarantine */
bool repeating;   /* it may be sent while the platform knows its key, and no longer */
byte a_num[TOKENS + 1];   /* 0: no such row */
byte a_out[TOKENS + 1];   /* PUB, DOUBT, or SURE_NOT or REFUSED */
byte a_proof[TOKENS + 1];
byte a_how[TOKENS + 1];
bool ended[RUNS];         /* the run is proved to be over */

#if RESTORES
bool kept, b_held, b_repeating, b_ended[RUNS];
byte b_st, b_tok, b_num, b_since;
byte b_a_num[TOKENS + 1], b_a_out[TOKENS + 1], b_a_proof[TOKENS + 1], b_a_how[TOKENS + 1];
#endif

/* A begin whose commit is on its way, and holds the row's lock; `orphaned`: its client is gone. */
byte pend;
bool orphaned;

/* The world. */
byte dealt;                /* tokens given out: random, so never again after a restore */
byte owner[TOKENS + 1];    /* the run that claimed with it */
byte wire[TOKENS + 1];
byte copies;               /* on the page */
bool raced[TOKENS + 1];    /* it was on its way when another was accepted */
bool key_ends;             /* too late to begin a repeat */
byte key_over;             /* the platform has forgotten it; the last token dealt by then */
byte epochs;               /* doubts so far */
bool link[RUNS] = true;    /* connected, and admitted by the witness */
bool dead[RUNS];
bool stopping[RUNS];
bool parked[RUNS];         /* something could not be recorded: no clean end */
byte file[RUNS] = WHOLE;
byte hand[RUNS];           /* the token a hand is at */
byte stage[RUNS];
bool revoked[RUNS];
byte report[RUNS];
bool started[TOKENS + 1];  /* lines of the file */
byte answered[TOKENS + 1];
bool adopted[TOKENS + 1];  /* a send the database lacks was told to it */
bool went_back, restored;
bool loss_is_old;          /* a permit from before the loss has lapsed by now */
byte loss_at;              /* the last token dealt when the loss was noticed */

byte crashes = CRASHES, cuts = CUTS, drains = DRAINS, edits = EDITS, looks = LOOKS, words = WORDS;

bool told_live;   /* the database was told that it is live */
bool alerted;
bool bad_move;    /* a change of state the table does not have */
bool quiet;       /* nothing can happen any more */

hidden byte x, pick, to, was;

#if TOKENS == 2
#define ANY(p) (p(1) || p(2))
#elif TOKENS == 3
#define ANY(p) (p(1) || p(2) || p(3))
#elif TOKENS == 4
#define ANY(p) (p(1) || p(2) || p(3) || p(4))
#endif
#define ANY_RUN(p) (p(0) || p(1))

#define ROW(t) (a_num[t] != 0)
#define UNPROVED(t) (ROW(t) && a_proof[t] == 0)
#if defined(RESCUE_REQUEUES_SENDING) || defined(BEGIN_WITHOUT_FENCE) || defined(NEW_TIME_FOR_UNKNOWN)
#define REFUSED_BY_INDEX false /* they need the promise's index to be gone */
#else
#define REFUSED_BY_INDEX ANY(UNPROVED)
#endif
#define IS_LIVE(t) (ROW(t) && a_out[t] == PUB)
#define POSSIBLY_LIVE(t) (ROW(t) && a_proof[t] == REPEAT)
#ifdef REPEAT_HIDES_DOUBT
#define MAY_NOT_END false
#else
#define MAY_NOT_END ANY(POSSIBLY_LIVE)
#endif
#define TO_LOOK_AT(t) (ROW(t) && a_proof[t] != NOT_SENT && a_proof[t] != REPEAT)
#define IN_FLIGHT(t) (wire[t] == FLIGHT)
#define MAY_WRITE(r) (stage[r] == LET || (stage[r] == ORDERED && !revoked[r]))
#define IS_LET(r) (stage[r] == LET)
#define KEY_TOO_OLD (repeating && key_ends)
#define PERMIT_IS_OLD(t) (t <= key_over || (loss_is_old && !ROW(t)))
#define LOST_MAY_WRITE(r) (stage[r] == LET && !ROW(hand[r]))
#define LOST_IN_FLIGHT(t) (IN_FLIGHT(t) && !ROW(t))
#define CAN_APPEAR (ANY(IN_FLIGHT) || ANY_RUN(MAY_WRITE))
#define CAN_CLAIM(r) (!dead[r] && !stopping[r])
#define FREE (pend == 0)
#define TAKES_LATE(s) \
	(s == SCHEDULED || s == CLAIMED || s == UNKNOWN || s == FAILED || s == MISSED || s == DROPPED)

/* Horizon: what was written has had its time to land. */
#ifdef HORIZON_NOT_WAITED
#define LANDED(t) true
#else
#define STRAY(u, t) (u < t && IN_FLIGHT(u) && !(hand[owner[u]] == u && stage[owner[u]] == WAITING))
#define LANDED(t) (!IN_FLIGHT(t) && !STRAY(1, t) && !STRAY(2, t) && !STRAY(3, t))
#endif

/* R4: the sender is proved unable to write any more, as far as the journal knows. */
#ifdef RESEND_WITHOUT_GONE
#define GONE(t) true
#elif defined(DRAINED_IS_RETURNED)
#define GONE(t) (a_how[t] == BY_HAND || a_how[t] == BY_DRAIN || ended[owner[t]])
#else
#define GONE(t) (a_how[t] == BY_HAND || ended[owner[t]])
#endif

/* All that may be live can arrive no more: the attempt in question, and each that it repeats. */
#ifdef NEWEST_REPEAT_ALONE
#define MAY_ARRIVE(t) (t == about && !(GONE(t) && LANDED(t)))
#else
#define MAY_ARRIVE(t) ((t == about || POSSIBLY_LIVE(t)) && !(GONE(t) && LANDED(t)))
#endif
#define NOTHING_CAN_ARRIVE (about != 0 && !ANY(MAY_ARRIVE))

/* After a restore: nothing of a send that the database lacks can arrive. */
#ifdef QUARANTINE_BY_TIME
#define ALL_LANDED (!ANY(LOST_IN_FLIGHT))
#else
#define ALL_LANDED (!ANY(LOST_IN_FLIGHT) && !ANY_RUN(LOST_MAY_WRITE))
#endif

/* A verdict of absence on a doubt of before the loss waits as the quarantine does. Before the loss
   is noticed it may be given: what it frees is held when it is. */
#ifdef UNKNOWN_NOT_QUARANTINED
#define LOSS_IS_OVER true
#else
#define LOSS_IS_OVER (!restored || went_back || ALL_LANDED)
#endif

/* ------------------------------------------------------------------------------------------- */
/* Statements. Each is called inside an atomic step with the row free. */

inline move(state) {
	if
	:: st != state && !MAY(st, state) -> bad_move = true
	:: else
	fi;
	if
	:: state == UNKNOWN && st != UNKNOWN -> epochs++; since = epochs
	:: else
	fi;
	if
	:: state != CLAIMED && state != SENDING -> tok = 0
	:: else
	fi;
	if
	:: state != SCHEDULED -> held = false
	:: else
	fi;
	st = state
}

/* A certain failure: tried again, or at its end. While a repeat may be live there is no end. */
inline fail_or_retry(must_fail) {
	if
	:: !(must_fail) -> to = SCHEDULED
	:: (must_fail) && MAY_NOT_END -> to = UNKNOWN
	:: (must_fail) && !MAY_NOT_END -> to = FAILED
	fi
}

/* What was begun before commits were lost is held wherever it would be free to be sent again: what
   was known of it may be what is lost. */
inline hold_back(t) {
#ifdef FREED_AND_NOT_HELD
	skip
#else
	if
	:: st == SCHEDULED && t <= loss_at -> held = true
	:: else
	fi
#endif
}

/* A started send that the database does not hold: doubted, once. */
inline doubt_lost(t) {
	if
	:: !adopted[t] ->
		adopted[t] = true;
		if
		:: st == SCHEDULED || st == CLAIMED || st == FAILED || st == MISSED -> move(UNKNOWN)
		:: else -> alerted = true
		fi
	:: else
	fi
}

/* An answer after its job was taken away, matched by its attempt's token. */
inline record_late(t, out, final) {
	if
	:: !ROW(t) ->
		if
		:: out == SURE_NOT
		:: else -> parked[owner[t]] = true; doubt_lost(t)
		fi
	:: ROW(t) && (a_out[t] == PUB) /* known */
	:: ROW(t) && a_out[t] != PUB && out == PUB ->
#ifdef LATE_PUBLISHED_IGNORED
		skip
#else
		a_out[t] = PUB; a_how[t] = BY_HAND;
		if
		:: TAKES_LATE(st) || (st == SENDING && a_num[t] == num) -> move(PUBLISHED)
		:: else -> alerted = true
		fi
#endif
	:: ROW(t) && a_out[t] != PUB && (out == DOUBT || out == DRAINED) ->
		if
		:: a_how[t] == BY_HAND || a_proof[t] != 0 /* known */
		:: else ->
			a_out[t] = DOUBT;
			if
			:: out == DOUBT -> a_how[t] = BY_HAND
			:: else -> a_how[t] = BY_DRAIN
			fi
		fi
	:: ROW(t) && a_out[t] != PUB && (out == SURE_NOT || out == REFUSED) ->
		if
		:: a_proof[t] != 0 /* known */
		:: else ->
			a_out[t] = out; a_how[t] = BY_HAND;
			a_proof[t] = (out == REFUSED -> BY_LIST : NOT_SENT);
			if
			:: a_num[t] == num && (st == UNKNOWN || st == SENDING) ->
				fail_or_retry(out == REFUSED && final);
				move(to);
				hold_back(t)
			:: else
			fi
		fi
	fi
}

/* How a claim or a send ended, by the run that holds it. */
inline settle(t, number, out, final) {
	if
	:: tok == t && (st == CLAIMED || st == SENDING) ->
		was = st;
		if
		:: out == RELEASE -> move(SCHEDULED)
		:: out == UNCLEAR -> move(UNKNOWN)
		:: out == FOUND -> move(PUBLISHED)
		:: out >= PUB ->
			if
			:: was == SENDING ->
				a_out[t] = (out == DRAINED -> DOUBT : out);
				a_how[t] = (out == DRAINED -> BY_DRAIN : BY_HAND);
				a_proof[t] = (out == SURE_NOT -> NOT_SENT : (out == REFUSED -> BY_LIST : 0))
			:: else
			fi;
			if
			:: out == PUB || ANY(IS_LIVE) -> move(PUBLISHED)
			:: else ->
				if
				:: out == DOUBT || out == DRAINED -> move(UNKNOWN)
				:: else -> fail_or_retry(out == REFUSED && final); move(to); hold_back(t)
				fi
			fi
		fi
#ifdef LATE_NOT_SENT_UNFENCED
	:: tok != t && out == SURE_NOT && (st == SENDING || st == UNKNOWN) ->
		for (pick : 1 .. TOKENS) {
			if
			:: UNPROVED(pick) -> a_proof[pick] = NOT_SENT
			:: else
			fi
		};
		move(SCHEDULED)
	:: tok != t && !(out == SURE_NOT && (st == SENDING || st == UNKNOWN)) ->
#elif defined(FENCE_BY_NUMBER)
	:: tok != t && out >= PUB ->
		was = t;
		for (pick : 1 .. TOKENS) {
			if
			:: a_num[pick] == number -> was = pick
			:: else
			fi
		};
		record_late(was, out, final)
	:: tok != t && out < PUB
	:: tok == t && st != CLAIMED && st != SENDING ->
#else
	:: else ->
#endif
		if
		:: out >= PUB -> record_late(t, out, final)
		:: out == FOUND -> /* told of the attempt that was looked for */
			was = 0;
			for (pick : 1 .. TOKENS) {
				if
				:: was == 0 && TO_LOOK_AT(pick) -> was = pick
				:: else
				fi
			};
			record_late(was, PUB, final)
		:: else
		fi
	fi
}

/* What is done with an expired lease, or with the claims of a run that is over. */
inline rescue_row() {
	was = tok;
	if
	:: st == CLAIMED -> move(SCHEDULED)
	:: st == SENDING ->
		if
		:: a_how[was] == 0 -> a_how[was] = BY_RESCUE; a_out[was] = DOUBT
		:: else
		fi;
#ifdef RESCUE_REQUEUES_SENDING
		move(SCHEDULED)
#else
		move(UNKNOWN)
#endif
	fi
}

/* Everything that may be one of the missing sends is looked for first. */
inline quarantine() {
	loss_at = dealt;
#ifndef QUARANTINE_NOT_HELD
	if
	:: st == SCHEDULED || st == CLAIMED -> move(SCHEDULED); held = true
	:: else
	fi
#endif
}

/* A new connection: what this run is sending and the database lacks, then the witness. */
inline connect(me) {
	link[me] = true;
	if
	:: hand[me] != 0 && !ROW(hand[me]) ->
		stopping[me] = true; parked[me] = true; doubt_lost(hand[me])
	:: else
	fi;
#ifndef LOST_COMMITS_NO_WITNESS
	if
	:: went_back -> went_back = false; quarantine()
	:: else
	fi
#endif
}

inline begin(t) {
	num++;
	a_num[t] = num;
	move(SENDING);
	tok = t;
	pend = 0;
	orphaned = false
}

inline die(r) {
	dead[r] = true;
	link[r] = false; stopping[r] = false;
	if
	:: hand[r] != 0 && wire[hand[r]] != FLIGHT -> wire[hand[r]] = OVER
	:: else
	fi;
	hand[r] = 0; stage[r] = 0; report[r] = 0; revoked[r] = false;
	if
	:: pend != 0 && owner[pend] == r -> orphaned = true
	:: else
	fi
}

/* ------------------------------------------------------------------------------------------- */
/* A worker run's coordinator. */

#ifdef FENCE_BY_NUMBER
#define NUMBER n
#else
#define NUMBER 0
#endif

proctype Coordinator(byte me) {
	byte t, out;
#ifdef FENCE_BY_NUMBER
	byte n; /* of the attempt it would begin */
#endif
	bool final;
rest:	{
	if
	:: atomic { !link[me] && FREE -> d_step { connect(me); t = 0; out = 0 }; goto rest }
	:: atomic { link[me] && !stopping[me] && FREE && st == SCHEDULED && !held &&
	            dealt < TOKENS &&
	            (me == 0 || dealt > 0 || !CAN_CLAIM(0)) -> /* the runs are alike: 0 is first */
		d_step { dealt++; t = dealt; owner[t] = me; move(CLAIMED); tok = t
#ifdef FENCE_BY_NUMBER
			; n = num + 1
#endif
		};
		if
		:: skip
		:: cuts > 0 -> cuts--; link[me] = false; out = RELEASE; goto ending
		fi
	   }
	:: atomic { drains > 0 && !stopping[me] -> drains--; stopping[me] = true; goto leave }
	:: atomic { stopping[me] -> goto leave }
	fi;

	/* Steps are harmless and leave nothing public: left out. A look comes before a second send. */
	if
	:: atomic { CAN_LOOK && ANY(TO_LOOK_AT) ->
		if
		:: copies > 0 -> out = FOUND; goto ending
		:: copies == 0 || HIDES
		:: out = UNCLEAR; goto ending
		fi
	   }
	:: !(CAN_LOOK && ANY(TO_LOOK_AT))
	fi;

	/* Begin: the row is locked, then the commit comes, and perhaps its acknowledgement. */
	do
	:: atomic { !link[me] && FREE -> d_step { connect(me) } }
	:: atomic { link[me] && FREE ->
		if
#ifdef BEGIN_WITHOUT_FENCE
		:: st != SENDING && st != PUBLISHED -> pend = t
		:: st == SENDING || st == PUBLISHED -> t = 0; goto rest
#else
		:: tok != t -> t = 0; goto rest
		:: tok == t && REFUSED_BY_INDEX -> out = UNCLEAR; goto ending
#ifndef KEY_MAY_BE_OVER
		:: tok == t && !REFUSED_BY_INDEX && KEY_TOO_OLD -> out = UNCLEAR; goto ending
		:: tok == t && !REFUSED_BY_INDEX && !KEY_TOO_OLD -> pend = t
#else
		:: tok == t && !REFUSED_BY_INDEX -> pend = t
#endif
#endif
		fi;
#ifdef SEND_BEFORE_BEGIN
		hand[me] = t; stage[me] = ORDERED;
#endif
		break
	   }
	od;
	if
	:: atomic { pend == t -> d_step { begin(t) } }
	:: atomic { pend == t && cuts > 0 -> cuts--; link[me] = false; out = SURE_NOT;
		if
		:: d_step { begin(t) }
		:: pend = 0
		:: orphaned = true
		fi;
#ifndef LOST_ACK_THEN_SENDS
		goto ending
#endif
	   }
	:: atomic { pend != t -> out = SURE_NOT; goto ending } /* the server went away */
	fi;

	/* The file, then the hand. */
#ifndef SEND_BEFORE_BEGIN
	atomic {
		if
		:: hand[me] = t; stage[me] = ORDERED
		:: out = SURE_NOT; goto ending
		fi
	};
#endif
	do
	:: atomic { stage[me] == TOLD -> out = report[me];
		d_step { report[me] = 0; hand[me] = 0; stage[me] = 0; revoked[me] = false }; break }
	:: atomic { drains > 0 && !stopping[me] -> drains--; stopping[me] = true }
	:: atomic { stopping[me] && stage[me] != TOLD -> /* its time to drain is over */
		if
		:: stage[me] == ORDERED -> revoked[me] = true; out = SURE_NOT
		:: else -> out = DRAINED; parked[me] = true
		fi;
		break
	   }
	:: atomic { !link[me] && FREE -> d_step { connect(me) } }
	od;

ending:
	do
	:: atomic { !link[me] && FREE -> d_step { connect(me) } }
	:: atomic { link[me] && FREE ->
		if
		:: out == REFUSED -> final = true
		:: final = false
		fi;
		d_step {
			if
			:: out == PUB -> told_live = true
			:: else
			fi;
			settle(t, NUMBER, out, final);
#if !RESTORES
			/* What the journal holds, its file need not. */
			if
			:: ROW(t) && a_how[t] == BY_HAND -> started[t] = false; answered[t] = 0
			:: else
			fi
#endif
		};
		final = false;
		if
		:: t = 0; out = 0; goto rest
		:: cuts > 0 -> cuts--; link[me] = false /* written, but it does not know */
		fi
	   }
	od;

leave:
	atomic {
		FREE ->
		if
		:: stage[me] == 0 && !parked[me] -> ended[me] = true; file[me] = 0
		:: else
		fi;
		d_step { die(me) }
	}
	} unless { dead[me] -> d_step { t = 0; out = 0; final = false } }
}

/* A hand: start line, permit, the one irreversible write, answer line. */
proctype Hand(byte me) {
	do
	:: atomic { stage[me] == ORDERED && !revoked[me] && !PERMIT_IS_OLD(hand[me]) ->
		started[hand[me]] = true; stage[me] = LET }
	:: atomic { stage[me] == ORDERED -> /* too late, revoked, or nobody answers the door */
		started[hand[me]] = true; answered[hand[me]] = SURE_NOT;
		report[me] = SURE_NOT; stage[me] = TOLD }
	:: atomic { stage[me] == LET -> wire[hand[me]] = FLIGHT; stage[me] = WAITING }
	:: atomic { stage[me] == WAITING ->
		if
		:: wire[hand[me]] == SAYS_OK -> report[me] = PUB
		:: wire[hand[me]] == SAYS_NO -> report[me] = REFUSED
		:: wire[hand[me]] == SAYS_NO && !CAN_LOOK -> report[me] = DOUBT
		:: wire[hand[me]] == SAYS_500 ->
#ifdef SERVER_ERROR_READ_AS_FAILURE
			report[me] = REFUSED
#else
			report[me] = DOUBT
#endif
#ifdef NO_ID_BELIEVED
		:: true -> report[me] = PUB
#endif
		:: true ->
#ifdef TIMEOUT_READ_AS_FAILURE
			report[me] = REFUSED
#else
			report[me] = DOUBT
#endif
		fi;
		if
		:: wire[hand[me]] != FLIGHT -> wire[hand[me]] = OVER
		:: else
		fi;
		answered[hand[me]] = report[me]; stage[me] = TOLD }
	:: dead[me] -> break
	od
}

/* The platform. What nobody waits for any more is accepted or refused all the same. */
inline reply(t, what) {
	if
	:: hand[owner[t]] == t && stage[owner[t]] == WAITING -> wire[t] = what
	:: else -> wire[t] = OVER
	fi
}

inline accept(t) {
	if
	:: HAS_KEY && key_over == 0 && copies > 0 && !raced[t]
	:: else -> copies++
	fi;
#if PLATFORM == LAPSING
	/* It looks for the key, then stores: two at once do not see each other. */
	for (x : 1 .. TOKENS) {
		raced[x] = wire[x] == FLIGHT && x != t
	};
	x = 0
#endif
}

active proctype Platform() {
	byte t;
	do
	:: atomic { ANY(IN_FLIGHT) ->
		if
		:: IN_FLIGHT(1) -> t = 1
		:: IN_FLIGHT(2) -> t = 2
#if TOKENS > 2
		:: IN_FLIGHT(3) -> t = 3
#endif
#if TOKENS > 3
		:: IN_FLIGHT(4) -> t = 4
#endif
		fi;
		if
		:: d_step { accept(t); reply(t, SAYS_OK) }
		:: d_step { accept(t); reply(t, SAYS_500) }
		:: d_step { reply(t, SAYS_NO) }
		fi;
		t = 0
	   }
	od
}

/* ------------------------------------------------------------------------------------------- */
/* What every worker does for the others. */

/* What a file proves of an attempt that nobody settled; 0: nothing. */
inline read_file(r, t, out) {
	if
	:: answered[t] != 0 -> out = answered[t]
	:: else ->
		if
#ifdef TORN_FILE_TRUSTED
		:: (a_how[t] == 0 || a_how[t] == BY_RESCUE) && !started[t] -> out = SURE_NOT
#elif defined(NOT_STARTED_UNREAD)
		:: file[r] == WHOLE && (a_how[t] == 0 || a_how[t] == BY_RESCUE) -> out = SURE_NOT
#else
		:: file[r] == WHOLE && (a_how[t] == 0 || a_how[t] == BY_RESCUE) && !started[t] ->
			out = SURE_NOT
#endif
		:: else -> out = 0
		fi
	fi
}

#ifdef FILE_READ_WITHOUT_LOCK
#define IS_OVER(r) true
#else
#define IS_OVER(r) dead[r]
#endif
#define READABLE(r) (IS_OVER(r) && (file[r] == WHOLE || file[r] == TORN))

inline replay(r, final) {
	/* Attempts of the run that are not settled, then what it holds. */
	for (pick : 1 .. TOKENS) {
		if
		:: owner[pick] == r && UNPROVED(pick) && a_num[pick] == num && a_out[pick] != PUB &&
		   (st == UNKNOWN || (st == SENDING && tok == pick)) ->
			read_file(r, pick, x);
			if
			:: x == PUB -> told_live = true
			:: else
			fi;
			if
			:: x != 0 -> record_late(pick, x, final)
			:: else
			fi
		:: else
		fi
	};
	if
#ifdef NOBODY_RESCUES_A_CLAIM
	:: st == SENDING && owner[tok] == r -> rescue_row()
#else
	:: (st == CLAIMED || st == SENDING) && owner[tok] == r -> rescue_row()
#endif
	:: else
	fi;
	/* Sends that the database lacks, and late news of those it has. */
	for (pick : 1 .. TOKENS) {
		if
		:: owner[pick] == r && started[pick] && !ROW(pick) && answered[pick] != SURE_NOT ->
#ifndef LOST_COMMITS_NO_WITNESS
			quarantine();
#endif
			if
			:: answered[pick] == PUB && TAKES_LATE(st) -> move(PUBLISHED)
			:: answered[pick] == PUB && st == PUBLISHED
			:: else -> doubt_lost(pick)
			fi
		:: owner[pick] == r && started[pick] && ROW(pick) && answered[pick] == PUB ->
			told_live = true;
			record_late(pick, PUB, final)
		:: else
		fi
	};
	ended[r] = true;
	if
	:: dead[r] ->
		file[r] = 0;
		for (pick : 1 .. TOKENS) {
			if
			:: owner[pick] == r -> started[pick] = false; answered[pick] = 0
			:: else
			fi
		}
	:: else
	fi;
	pick = 0; x = 0
}

active proctype Rescue() {
	byte r;
	bool final;
	do
#ifdef NOBODY_RESCUES_A_CLAIM
	:: atomic { FREE && st == SENDING -> d_step {
#else
	:: atomic { FREE && (st == CLAIMED || st == SENDING) -> d_step {
#endif

		rescue_row() } }
	:: atomic { FREE && ANY_RUN(READABLE) ->
		if
		:: READABLE(0) -> r = 0
		:: READABLE(1) -> r = 1
		fi;
		if
		:: final = false
		:: final = true
		fi;
		d_step { replay(r, final); r = 0; final = false }
	   }
	od
}

/* The attempt that may be live: without a proof, else the newest that may be repeated, else the
   first that was not proved unsent. 0: the database lost it. */
#ifdef LOST_SEND_JUDGED_BY_OLDER
#define SPEAKS_OF_IT(t) (ROW(t) && a_proof[t] != NOT_SENT)
#else
#define SPEAKS_OF_IT(t) (ROW(t) && a_proof[t] != NOT_SENT && !ANY(IS_ORPHAN))
#endif
#define IS_ORPHAN(t) (adopted[t] && !ROW(t))
inline choose(t) {
	t = 0;
	for (pick : 1 .. TOKENS) {
		if
		:: SPEAKS_OF_IT(pick) ->
			if
			:: t == 0 -> t = pick
			:: t != 0 && a_proof[pick] == 0 -> t = pick
			:: t != 0 && a_proof[pick] == REPEAT && a_proof[t] != 0 &&
			   (a_proof[t] != REPEAT || a_num[pick] > a_num[t]) -> t = pick
			:: t != 0 && a_proof[pick] != 0 && a_proof[pick] != REPEAT &&
			   a_proof[t] != 0 && a_proof[t] != REPEAT && a_num[pick] < a_num[t] -> t = pick
			:: else
			fi
		:: else
		fi
	};
	pick = 0
}

/* The doubt that was looked at is the one there is. */
#ifdef OLD_LOOK_NEW_ATTEMPT
#define STANDS (st == UNKNOWN)
#else
#define STANDS (st == UNKNOWN && num == latest && since == which)
#endif

inline prove(about, proof) {
	for (pick : 1 .. TOKENS) {
		if
#ifdef OLD_LOOK_NEW_ATTEMPT
		:: UNPROVED(pick) -> a_proof[pick] = proof
#else
		:: pick == about && UNPROVED(pick) -> a_proof[pick] = proof
#endif
		:: POSSIBLY_LIVE(pick) && proof != REPEAT -> a_proof[pick] = proof
		:: else
		fi
	};
	pick = 0
}

inline absent(about, state) {
	prove(about, ABSENT);
	repeating = false;
	loss_is_old = loss_is_old || (restored && !went_back);
	move(state)
}

inline confirm_live(about) {
	if
	:: about != 0 && ROW(about) -> a_out[about] = PUB
	:: else
	fi;
	move(PUBLISHED)
}

/* A key that is kept for ever is safe at any time; another needs R4 and the horizon as well. */
#ifdef REPEAT_AT_ANY_TIME
#define MAY_REPEAT HAS_KEY
#else
#define MAY_REPEAT (PLATFORM == KEYED || (PLATFORM == LAPSING && landed && LOSS_IS_OVER && !key_ends))
#endif

active proctype Reconciler() {
	byte about, latest, which;
	bool seen, landed;
	do
	:: atomic { st == UNKNOWN && looks > 0 && (CAN_LOOK || HAS_KEY) ->
		looks--;
		d_step { choose(about); latest = num; which = since;
		         landed = NOTHING_CAN_ARRIVE };
		if
		:: copies > 0 -> seen = true
		:: copies == 0 || HIDES -> seen = false
		fi;
	   }
	   atomic { FREE ->
		if
		:: !STANDS || about == 0 /* decided meanwhile, or for a person */
		:: STANDS && about != 0 && seen -> d_step { confirm_live(about) }
		:: STANDS && about != 0 && !seen && MAY_REPEAT && a_proof[about] != REPEAT ->
			d_step { prove(about, REPEAT); repeating = (PLATFORM == LAPSING); move(SCHEDULED) }
#ifdef ABSENCE_TRUSTED
		:: STANDS && about != 0 && !seen && landed ->
#else
		:: STANDS && about != 0 && !seen && landed && LOSS_IS_OVER && IS_WHOLE &&
		   a_proof[about] != REPEAT ->
#endif
			d_step { absent(about, SCHEDULED) }
		:: STANDS && about != 0 && !seen /* look again, or ask */
		fi;
		about = 0; latest = 0; which = 0; seen = false; landed = false
	   }
	od
}

/* ------------------------------------------------------------------------------------------- */
/* People. They see the page as it is, and say what they saw; they look when they may decide. */

#ifdef COMES_BACK_AND_NOT_HELD
#define COMES_BACK_HELD false
#else
#define COMES_BACK_HELD restored
#endif

active [PEOPLE] proctype Person() {
	byte about, latest, which;
	bool seen, landed;
	do
	:: atomic { words > 0 && st == UNKNOWN ->
		words--;
		d_step { choose(about); latest = num; which = since; seen = copies > 0;
		         landed = NOTHING_CAN_ARRIVE }
	   }
	   atomic { FREE ->
		if
		:: !STANDS
		:: STANDS && seen -> d_step { confirm_live(about) }
#ifdef LOOK_BEFORE_UNLOCK
		:: STANDS && !seen && NOTHING_CAN_ARRIVE && LOSS_IS_OVER ->
#else
		:: STANDS && !seen && landed && LOSS_IS_OVER ->
#endif
			if
			:: d_step { absent(about, SCHEDULED) }
			:: d_step { absent(about, FAILED) }
			fi
		:: STANDS -> d_step { move(DROPPED) }
#ifdef NEW_TIME_FOR_UNKNOWN
		:: STANDS -> d_step { move(SCHEDULED) }
#endif
		fi;
		about = 0; latest = 0; which = 0; seen = false; landed = false
	   }
	:: atomic { edits > 0 && FREE && (st == SCHEDULED || st == CLAIMED) ->
		edits--;
		if
		:: MAY_NOT_END -> d_step { move(UNKNOWN) } /* no end hides a doubt */
		:: !MAY_NOT_END -> d_step { move(CANCELLED) }
		fi
	   }
#if defined(CANCEL_IGNORES_SENDING) || defined(MOVE_OUTSIDE_TABLE)
	:: atomic { edits > 0 && FREE && st == SENDING -> edits--; d_step { move(CANCELLED) } }
#endif
	:: atomic { edits > 0 && FREE && st == CLAIMED -> /* to another time */
		edits--; d_step { move(SCHEDULED) } }
	:: atomic { edits > 0 && FREE && st == SCHEDULED && !held -> /* past its use */
		edits--;
		if
		:: MAY_NOT_END -> d_step { move(UNKNOWN) }
		:: !MAY_NOT_END -> d_step { move(MISSED) }
		fi
	   }
	:: atomic { edits > 0 && FREE && (st == FAILED || st == MISSED) &&
	            !ANY(UNPROVED) && !ANY(POSSIBLY_LIVE) -> /* requeue */
		edits--; d_step { move(SCHEDULED); held = COMES_BACK_HELD } }
	:: atomic { edits > 0 && FREE && st == CANCELLED && num == 0 -> /* restore */
		edits--; d_step { move(SCHEDULED); held = COMES_BACK_HELD } }
	od
}

/* ------------------------------------------------------------------------------------------- */
/* Faults. */

inline crash(r) {
	crashes--;
	d_step { die(r) };
	if
	:: file[r] = WHOLE
	:: file[r] = TORN;
		for (x : 1 .. TOKENS) {
			if
			:: owner[x] == r -> started[x] = false; answered[x] = 0
			:: else
			fi
		}
		x = 0
	:: file[r] = 0; ended[r] = true /* its machine is gone, and an operator says so */
	fi
}

#if RESTORES
inline keep() {
	kept = true;
	b_st = st; b_tok = tok; b_num = num; b_since = since; b_held = held; b_repeating = repeating;
	for (x : 1 .. TOKENS) {
		b_a_num[x] = a_num[x]; b_a_out[x] = a_out[x]; b_a_proof[x] = a_proof[x]; b_a_how[x] = a_how[x]
	}
	for (x : 0 .. RUNS - 1) { b_ended[x] = ended[x] }
	x = 0
}

inline put_back() {
	restored = true; went_back = true; kept = false; told_live = false;
	pend = 0; orphaned = false;
	st = b_st; tok = b_tok; num = b_num; since = b_since; held = b_held; repeating = b_repeating;
	for (x : 1 .. TOKENS) {
		a_num[x] = b_a_num[x]; a_out[x] = b_a_out[x]; a_proof[x] = b_a_proof[x]; a_how[x] = b_a_how[x];
		b_a_num[x] = 0; b_a_out[x] = 0; b_a_proof[x] = 0; b_a_how[x] = 0
	}
	for (x : 0 .. RUNS - 1) { ended[x] = b_ended[x]; b_ended[x] = false; link[x] = false }
	b_st = 0; b_tok = 0; b_num = 0; b_since = 0; b_held = false; b_repeating = false;
	x = 0
}

#endif

active proctype Faults() {
	do
	:: atomic { crashes > 0 && dealt > 0 && !dead[0] -> crash(0) }
	:: atomic { crashes > 0 && dealt > 0 && !dead[1] -> crash(1) }
	:: atomic { orphaned -> d_step { begin(pend) } } /* the commit comes after all */
	:: atomic { orphaned -> pend = 0; orphaned = false }
	/* A key is kept for longer than a permit of a repeat that was begun in time lasts, and than it
	   takes to write with it. */
	:: atomic { PLATFORM == LAPSING && !key_ends && dealt > 0 -> key_ends = true }
	:: atomic { key_ends && key_over == 0 && !ANY(IN_FLIGHT) && !ANY_RUN(IS_LET) -> key_over = dealt }
#if RESTORES
	:: atomic { !kept && !restored && FREE -> d_step { keep() } }
	:: atomic { kept && !restored -> d_step { put_back() } }
#endif
	od
}

#if RESTORES
/* Looks for a job in quarantine: found, or proved absent, or a person says so. */
active proctype Ward() {
	bool seen, landed;
	do
	:: atomic { held && st == SCHEDULED && looks > 0 ->
		looks--;
		landed = ALL_LANDED;
		loss_is_old = loss_is_old || landed;
#ifdef QUARANTINE_NOT_WAITED
		landed = true;
#endif
		if
		:: copies > 0 -> seen = true
		:: copies == 0 || HIDES -> seen = false
		fi
	   }
	   atomic { FREE ->
		if
		:: held && seen -> d_step { move(PUBLISHED) }
		:: held && !seen && landed && (IS_WHOLE || PLATFORM == BLIND || copies == 0) -> held = false
		:: else
		fi;
		seen = false; landed = false
	   }
	od
}
#endif

/* ------------------------------------------------------------------------------------------- */
/* What must hold. */

#define AT_REST \
	(st != CLAIMED && st != SENDING && (st != SCHEDULED || held || dealt == TOKENS || !ANY_RUN(CAN_CLAIM)))
#define WON (st == PUBLISHED || alerted || (restored && (st == UNKNOWN || st == DROPPED)))

/* What the journal says is not on the page: it ended so, or it waits to be sent, and is not said to
   be possibly live. After a restore it may be wrong until it has looked. */
#define SAID_NOT_LIVE (!restored && (st == FAILED || st == MISSED || st == CANCELLED || \
	((st == SCHEDULED || st == CLAIMED) && !ANY(POSSIBLY_LIVE))))

ltl never_two { [] (copies <= 1) }
ltl published_is_there { [] (st == PUBLISHED -> copies > 0) }
ltl not_live_is_not_there { [] (SAID_NOT_LIVE -> copies == 0 && !CAN_APPEAR) }
ltl in_the_table { [] !bad_move }
ltl published_wins { [] (quiet && told_live -> WON) }
ltl comes_to_rest { <> quiet && [] (quiet -> AT_REST) }
ltl promise {
	[] (copies <= 1 &&
	    (st == PUBLISHED -> copies > 0) &&
	    (SAID_NOT_LIVE -> copies == 0 && !CAN_APPEAR) &&
	    !bad_move &&
	    (quiet && told_live -> WON) &&
	    (quiet -> AT_REST))
}

active proctype Quiet() {
	timeout -> quiet = true
}

init {
	atomic {
		for (x : 0 .. RUNS - 1) { run Hand(x); run Coordinator(x) };
		x = 0
	}
}
