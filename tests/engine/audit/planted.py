"""What the owner of the tables could do, with each rule of the database dropped: by invariant.

A name in brackets is a job of ``history``.
"""

from __future__ import annotations

from typing import Final

_RESCUING: Final = "; UPDATE pulse SET rescue_not_before = now() - interval '1 hour'"
_DAY: Final = "interval '1 day'"
_PROOF: Final = "proved_by = 'worker run 1', proved_at = clock_timestamp()"

PLANTED: Final[dict[str, tuple[str, ...]]] = {
    "D01": (
        "UPDATE attempts SET proof = NULL WHERE job_id = [second try] AND number = 1",
        ("INSERT INTO attempts (job_id, number, token, incarnation, content_sha256, claimed_at)"
        " SELECT job_id, 2, gen_random_uuid(), incarnation, content_sha256, claimed_at"
        " FROM attempts WHERE job_id = [fresh]"),
    ),
    "D02": (
        "UPDATE attempts SET proof = NULL WHERE job_id = [refused]",
        "UPDATE jobs SET state = 'scheduled', settled_at = NULL WHERE id = [asked]",
        "UPDATE attempts SET proof = NULL WHERE job_id = [waits for its next]",
    ),
    "D03": (
        "UPDATE jobs SET state = 'scheduled', remote_id = NULL WHERE id = [live 0]",
        "UPDATE jobs SET state = 'failed', remote_id = NULL WHERE id = [live 1]",
    ),
    "D04": (
        "UPDATE remote_posts SET job_id = [live 0] WHERE job_id = [live 1]",
        "DELETE FROM remote_posts WHERE job_id = [live 2]",
        "INSERT INTO remote_posts SELECT * FROM remote_posts WHERE job_id = [live 3]",
        "UPDATE jobs SET remote_id = 'second' WHERE id = [live 0]",
    ),
    "D05": (
        (
            "UPDATE attempts SET token = (SELECT token FROM attempts WHERE job_id = [live 0])"
            " WHERE job_id = [live 1]"
        ),
        (
            "UPDATE jobs SET token = (SELECT token FROM jobs WHERE id = [claimed])"
            " WHERE id = [at work]"
        ),
        (
            "UPDATE jobs SET id = [live 0], token = (SELECT token FROM attempts"
            " WHERE job_id = [live 0]) WHERE id = [claimed]"
        ),
    ),
    "D06": (
        ("UPDATE jobs SET post_id = (SELECT post_id FROM jobs WHERE id = [held])"
        " WHERE id = [restored]"),
        ("INSERT INTO jobs SELECT (jsonb_populate_record(j, '{\"id\": 9999}')).* FROM jobs j"
        " WHERE id = [fresh]"),
    ),
    "D07": (
        "UPDATE attempts SET proof = 'absent', " + _PROOF + " WHERE job_id = [fresh]",
        "UPDATE attempts SET proof = 'forced' WHERE job_id = [absent, again] AND number = 1",
        "DELETE FROM verdicts WHERE job_id = [to be repeated]",
        "UPDATE attempts SET proved_by = 'somebody' WHERE job_id = [absent, given up]",
    ),
    "D08": (
        "UPDATE attempts SET reason = 'worker_died' WHERE job_id = [absent, again] AND number = 1",
        "UPDATE attempts SET settled_at = settled_at + " + _DAY
        + " WHERE job_id = [absent, given up]",
    ),
    "D09": (
        "UPDATE attempts SET proof = 'refused', proof_detail = 'x', " + _PROOF
        + " WHERE job_id = [fresh]",
        "UPDATE attempts SET proof_detail = NULL WHERE job_id = [refused]",
        "UPDATE attempts SET proof = NULL WHERE job_id = [refused]",
        "UPDATE attempts SET proved_by = 'somebody' WHERE job_id = [refused]",
        ("UPDATE attempts SET proof = 'not_sent', answer = '{\"status\": 200, \"sent\": 90}'"
        " WHERE job_id = [refused]"),
    ),
    "D10": (
        "UPDATE attempts SET proof = 'refused', proof_detail = 'x', " + _PROOF
        + " WHERE job_id = [live 0]",
        "UPDATE attempts SET proof = 'absent', " + _PROOF + " WHERE job_id = [live 1]",
    ),
    "D11": (
        "DELETE FROM job_events WHERE job_id = [requeued] AND event = 'requeue'",
        "UPDATE attempts SET outcome = 'rejected' WHERE job_id = [second try] AND number = 1",
    ),
    "D12": (
        "UPDATE attempts SET begun_at = begun_at - " + _DAY
        + " WHERE job_id = [second try] AND number = 2",
        "UPDATE verdicts SET at = at + " + _DAY + " WHERE job_id = [absent, again]",
    ),
    "D13": (
        "UPDATE jobs SET repeat_until = repeat_until + " + _DAY + " WHERE id = [to be repeated]",
        "UPDATE jobs SET repeat_until = NULL WHERE id = [to be repeated]",
        "UPDATE jobs SET repeat_until = clock_timestamp() WHERE id = [absent, for later]",
    ),
    "D14": (
        "UPDATE attempts SET begun_at = begun_at - " + _DAY + " WHERE job_id = [live 0]",
        "UPDATE attempts SET claimed_at = claimed_at - " + _DAY + " WHERE job_id = [live 0]",
    ),
    "D15": (
        "UPDATE jobs SET hold_reason = NULL WHERE id = [held]",
        "UPDATE jobs SET hold_reason = NULL, state = 'claimed' WHERE id = [held]",
    ),
    "D16": (
        "UPDATE job_contents SET platform_key = 'one' WHERE job_id IN ([live 0], [fresh])",
        "UPDATE job_contents SET platform_key = 'two' WHERE job_id IN ([held], [moved])",
    ),
    "D17": (
        "UPDATE jobs SET hold_reason = 'quarantine' WHERE id = [moved]",
        "INSERT INTO quarantined (job_id, quarantine_id, strict) VALUES ([moved], 1, true)",
        "UPDATE jobs SET hold_reason = NULL WHERE id = [in quarantine]",
    ),
    "D18": (
        "UPDATE attempts SET proof = 'forced' WHERE job_id = [mended]",
        "UPDATE attempts SET outcome = 'published', remote_id = 'x' WHERE job_id = [mended]",
        "UPDATE jobs SET state = 'unknown' WHERE id = [mended]",
        "UPDATE jobs SET replaces = [fresh] WHERE id = [has its place]",
        ("UPDATE attempts SET proof = 'repeat_safe' WHERE job_id = [begun, then changed]"),
    ),
    "L01": (
        "DELETE FROM jobs WHERE id = [moved]",
        "UPDATE job_keys SET job_id = 9999 WHERE job_id = [live 0]",
    ),
    "L02": (
        "DELETE FROM job_contents WHERE job_id = [moved]",
        "UPDATE job_contents SET key = 'another' WHERE job_id = [live 0]",
        "DELETE FROM job_keys WHERE job_id = [held]",
    ),
    "L03": (
        ("UPDATE jobs SET run_at = run_at - interval '1 hour', queue = 'nobody'"
        " WHERE id = [restored]"),
        ("UPDATE jobs SET queue = 'nobody', run_at = now() - interval '20 minutes'"
        " WHERE id = [waits for its next]"),
    ),
    "L04": (
        "UPDATE jobs SET useful_until = now() - interval '1 hour' WHERE id = [restored]",
        "UPDATE jobs SET useful_until = now() - interval '1 hour' WHERE id = [held]",
    ),
    "L05": (
        "UPDATE jobs SET run_at = run_at + interval '30 days' WHERE id = [moved]",
        "UPDATE jobs SET run_at = now() WHERE id = [for tomorrow]",
        "UPDATE jobs SET useful_until = due_at WHERE id = [moved]",
    ),
    "L06": (
        "DELETE FROM jobs WHERE id = [moved]",
        "UPDATE jobs SET post_id = 9999 WHERE id = [held]",
    ),
    "L07": (
        "DELETE FROM gates WHERE channel_id = 1",
        "INSERT INTO gates (channel_id) VALUES (9999)",
    ),
    "L08": (
        "DELETE FROM unique_locks WHERE job_id = [unique]",
        "UPDATE unique_locks SET lapses_at = now() WHERE job_id = [unique]",
    ),
    "S01": (
        "UPDATE jobs SET lease_until = now() - interval '1 hour' WHERE id = [sending]"
        + _RESCUING,
        "UPDATE jobs SET lease_until = now() - interval '1 hour' WHERE id = [at work]"
        + _RESCUING,
    ),
    "S02": (
        "UPDATE jobs SET lease_until = lease_until + interval '30 days' WHERE id = [sending]",
        "UPDATE doubts SET next_look_at = now() + interval '30 days' WHERE job_id = [fresh]",
        "UPDATE doubts SET snoozed_until = now() + interval '90 days' WHERE job_id = [snoozed]",
        "UPDATE gates SET not_before = now() + interval '30 days' WHERE channel_id = 1",
        "UPDATE pulse SET rescue_not_before = now() + interval '30 days'",
    ),
    "S03": (
        "DELETE FROM doubts WHERE job_id = [fresh]",
        "INSERT INTO doubts (job_id) VALUES ([refused])",
        "UPDATE doubts SET since = since - " + _DAY + " WHERE job_id = [asked]",
    ),
    "S04": (
        ("UPDATE doubts SET asked_at = now() - interval '1 hour', asked_reason = 'x'"
        " WHERE job_id = [fresh]"),
        ("DELETE FROM job_events WHERE job_id = [asked] AND event = 'alert';"
        " UPDATE doubts SET asked_at = now() - interval '1 hour' WHERE job_id = [asked]"),
    ),
    "S05": (
        "UPDATE doubts SET since = now() - interval '2 days' WHERE job_id = [asked]",
        "UPDATE doubts SET since = now() - interval '2 days' WHERE job_id = [fresh]",
    ),
    "S06": (
        "UPDATE doubts SET next_look_at = now() - interval '1 hour' WHERE job_id = [fresh]",
        ("UPDATE doubts SET next_look_at = now() - interval '1 hour', lease_until = now()"
        " - interval '1 hour' WHERE job_id = [held by a look]"),
    ),
    "S07": (
        "UPDATE orphans SET adopted = false",
        ("INSERT INTO orphans (incarnation, job_id, token, line)"
        " VALUES ('1', 9999, gen_random_uuid(), '{}')"),
    ),
    "S08": (
        "UPDATE incarnations SET seen_at = now() - interval '2 hours' WHERE id = 1",
        ("UPDATE incarnations SET seen_at = now() - interval '2 hours', declared_gone_at = NULL"
        " WHERE declared_gone_at IS NOT NULL"),
    ),
    "S09": (
        "UPDATE jobs SET useful_until = NULL, due_at = now() - interval '8 days' WHERE id = [held]",
        ("UPDATE jobs SET useful_until = NULL, due_at = now() - interval '9 days',"
        " hold_reason = 'quarantine' WHERE id = [moved]"),
    ),
    "S10": (
        ("UPDATE quarantined SET next_look_at = now() - interval '1 hour'"
        " WHERE job_id = [in quarantine]"),
        ("UPDATE quarantined SET asked_at = now() - interval '2 days'"
        " WHERE job_id = [in quarantine]"),
    ),
    "T01": (
        "UPDATE jobs SET token = NULL WHERE id = [claimed]",
        "UPDATE jobs SET state = 'scheduled' WHERE id = [claimed]",
        "UPDATE jobs SET state = 'done' WHERE id = [live 0]",
        "UPDATE jobs SET hand_at = now() WHERE id = [sending]",
    ),
    "T02": (
        "UPDATE jobs SET state = 'unknown' WHERE id = [live 0]",
        "UPDATE jobs SET remote_id = NULL WHERE id = [live 0]",
        "UPDATE jobs SET attested_at = now() WHERE id = [live 0]",
    ),
    "T03": (
        "UPDATE jobs SET settled_at = NULL WHERE id = [live 0]",
        "UPDATE jobs SET settled_at = now() WHERE id = [sending]",
    ),
    "T04": (
        "UPDATE jobs SET hold_reason = 'because' WHERE id = [moved]",
        "UPDATE jobs SET hold_reason = 'held by a person' WHERE id = [moved]",
        "UPDATE jobs SET hold_reason = 'quarantine' WHERE id = [live 0]",
    ),
    "T05": (
        "DELETE FROM attempts WHERE job_id = [second try] AND number = 1",
        "UPDATE jobs SET attempts = 3 WHERE id = [second try]",
        "UPDATE attempts SET number = 5 WHERE job_id = [live 0]",
        "UPDATE jobs SET claims = 0 WHERE id = [live 0]",
    ),
    "T06": (
        "UPDATE jobs SET token = gen_random_uuid() WHERE id = [sending]",
        "UPDATE attempts SET settled_at = now(), outcome = 'unknown' WHERE job_id = [sending]",
        "UPDATE attempts SET settled_at = NULL, outcome = NULL WHERE job_id = [fresh]",
    ),
    "T07": (
        "UPDATE attempts SET outcome = NULL WHERE job_id = [fresh]",
        "UPDATE attempts SET reason = 'because' WHERE job_id = [refused]",
        "UPDATE attempts SET remote_id = NULL WHERE job_id = [live 0]",
        "UPDATE attempts SET outcome = 'fine' WHERE job_id = [live 0]",
    ),
    "T08": (
        "UPDATE attempts SET outcome = 'unknown' WHERE job_id = [live 0]",
        "DELETE FROM verdicts WHERE job_id = [vouched for]",
        "UPDATE jobs SET state = 'published', remote_id = 'made up' WHERE id = [fresh]",
        "UPDATE jobs SET settled_at = settled_at - " + _DAY + " WHERE id = [live 0]",
    ),
    "T09": (
        "DELETE FROM remote_posts WHERE remote_id = 'too late'",
        "DELETE FROM remote_posts WHERE remote_id = 'named twice'",
    ),
    "T10": (
        "INSERT INTO remote_posts (channel_id, remote_id, job_id) VALUES (1, 'more', [live 0])",
        "UPDATE remote_posts SET bound_at = bound_at - " + _DAY + " WHERE job_id = [live 0]",
    ),
    "T11": (
        "UPDATE job_contents SET content = content || ' ' WHERE job_id = [moved]",
        "UPDATE job_contents SET progress_sha256 = NULL WHERE job_id = [on its way]",
    ),
    "T12": (
        ("UPDATE job_contents SET content = 'x', content_sha256 = sha256('x')"
        " WHERE job_id = [live 0]"),
        "UPDATE attempts SET version = 2 WHERE job_id = [live 0]",
    ),
    "T13": (
        ("DELETE FROM approvals WHERE version_id = (SELECT version_id FROM job_contents"
        " WHERE job_id = [moved])"),
        ("UPDATE job_contents SET content = 'x', content_sha256 = sha256('x')"
        " WHERE job_id = [moved]"),
        ("UPDATE post_versions SET content = content || ' ' WHERE id = (SELECT version_id"
        " FROM job_contents WHERE job_id = [live 0])"),
        ("INSERT INTO version_variants (version_id, channel_id, content, content_sha256, own)"
        " SELECT c.version_id, j.channel_id, 'its own', sha256('its own'), '{text}' FROM jobs j"
        " JOIN job_contents c ON c.job_id = j.id WHERE j.id = [moved]"),
    ),
    "T14": (
        "UPDATE jobs SET due_at = due_at + interval '1 hour' WHERE id = [for tomorrow]",
        "UPDATE jobs SET channel_id = 2 WHERE id = [moved]",
        "UPDATE jobs SET queue = 'nobody' WHERE id = [moved]",
    ),
    "T15": (
        "UPDATE jobs SET settled_at = now() + " + _DAY + " WHERE id = [live 0]",
        "UPDATE jobs SET claimed_at = claimed_at - " + _DAY + " WHERE id = [claimed]",
    ),
    "T16": (
        "UPDATE attempts SET settled_at = begun_at - " + _DAY + " WHERE job_id = [live 0]",
        "UPDATE attempts SET begun_at = begun_at + " + _DAY + " WHERE job_id = [fresh]",
        "UPDATE attempts SET proved_at = proved_at - " + _DAY + " WHERE job_id = [refused]",
    ),
    "T17": (
        "UPDATE jobs SET due_at = due_at + interval '1 hour' WHERE id = [live 0]",
        "UPDATE jobs SET useful_until = due_at - interval '1 hour' WHERE id = [live 0]",
    ),
    "T18": (
        "UPDATE jobs SET due_at = NULL WHERE id = [live 0]",
        "UPDATE attempts SET claimed_at = NULL WHERE job_id = [live 0]",
    ),
    "T19": (
        "UPDATE jobs SET state = 'missed' WHERE id = [cancelled]",
        "UPDATE jobs SET state = 'dropped' WHERE id = [refused]",
        "DELETE FROM verdicts WHERE job_id = [dropped]",
        "UPDATE jobs SET state = 'cancelled', settled_at = now() WHERE id = [moved]",
    ),
    "T20": (
        "UPDATE jobs SET settled_at = settled_at - " + _DAY + " WHERE id = [cancelled]",
        "UPDATE jobs SET settled_at = settled_at - " + _DAY + " WHERE id = [missed]",
    ),
    "T21": (
        ("UPDATE job_events SET detail = detail || '{\"to\": \"cancelled\"}'"
        " WHERE job_id = [died in a send] AND event = 'lease_expired'"),
        "DELETE FROM job_events WHERE job_id = [restored] AND event = 'cancel'",
        ("INSERT INTO job_events (job_id, event, who, at) SELECT [cancelled], 'requeue', 'x',"
        " clock_timestamp()"),
    ),
    "T22": (
        "UPDATE job_events SET event = 'nothing' WHERE job_id = [cancelled]",
        "UPDATE job_events SET detail = '{}' WHERE job_id = [moved]",
        "UPDATE job_events SET attempt = 9 WHERE job_id = [late and live]",
    ),
    "T23": (
        "UPDATE looks SET token = gen_random_uuid() WHERE job_id = [found]",
        "UPDATE looks SET begun_at = begun_at - " + _DAY + " WHERE job_id = [found]",
        "UPDATE looks SET evidence = '{}' WHERE job_id = [absent, again]",
    ),
    "T24": (
        "UPDATE verdicts SET token = gen_random_uuid() WHERE job_id = [named]",
        "DELETE FROM looks WHERE job_id = [found]",
        "UPDATE verdicts SET decision = 'live' WHERE job_id = [dropped]",
        "UPDATE verdicts SET who = '' WHERE job_id = [named]",
    ),
    "T25": (
        "UPDATE doubts SET asked_at = NULL WHERE job_id = [asked]",
        "UPDATE doubts SET taken_at = taken_at - " + _DAY + " WHERE job_id = [taken]",
        "UPDATE doubts SET look_token = NULL WHERE job_id = [held by a look]",
    ),
    "T26": (
        "UPDATE incarnations SET ended_at = now() WHERE id = 1",
        "UPDATE incarnations SET seen_at = now() + " + _DAY + " WHERE id = 1",
    ),
    "T27": (
        "UPDATE attempts SET reason = 'no_answer' WHERE job_id = [died in a send]",
        "UPDATE attempts SET incarnation = 1 WHERE job_id = [died in a send]",
    ),
    "T28": (
        "UPDATE job_events SET job_id = [live 0] WHERE detail ->> 'remote_id' = 'in the file'",
        "DELETE FROM remote_posts WHERE remote_id = 'in the file'",
    ),
    "T29": (
        "DELETE FROM job_events WHERE event = 'cancel'",
        "UPDATE job_events SET event = 'hold' WHERE event = 'cancel'",
    ),
    "T30": (
        ("UPDATE channels SET rehearsal_allowed_at = clock_timestamp(), rehearsal_allowed_by = 'x'"
        " WHERE id = 1"),
        ("INSERT INTO channel_events (channel_id, who, event)"
        " VALUES (1, 'x', 'rehearsal_allowed')"),
    ),
    "T31": (
        "UPDATE jobs SET hold_reason = NULL WHERE id = [awaits its approval]",
        "UPDATE jobs SET hold_reason = NULL WHERE id = [approval withdrawn]",
        ("UPDATE jobs SET hold_reason = NULL, state = 'claimed' WHERE id = [approval withdrawn]"),
        ("UPDATE approvals SET withdrawn_at = clock_timestamp(), withdrawn_by = 'x' WHERE"
        " version_id = (SELECT version_id FROM job_contents WHERE job_id = [moved])"),
        ("UPDATE posts SET trashed_at = clock_timestamp(), trashed_by = 'x' WHERE id ="
        " (SELECT post_id FROM jobs WHERE id = [moved])"),
        ("INSERT INTO post_versions (id, post_id, number, content, content_sha256, created_by,"
        " created_at) SELECT 9999, post_id, 9, 'x', sha256('x'), 'x', now() FROM jobs"
        " WHERE id = [moved]"),
        "UPDATE jobs SET state = 'scheduled', hold_reason = NULL WHERE id = [mended]",
    ),
    "T32": (
        ("UPDATE approvals SET approved_at = now() + interval '1 hour' WHERE version_id ="
        " (SELECT version_id FROM job_contents WHERE job_id = [live 0]);"
        " DELETE FROM post_events WHERE event = 'approved'"),
        ("UPDATE post_events SET event = 'approval_withdrawn' WHERE event = 'approved' AND"
        " post_id = (SELECT post_id FROM jobs WHERE id = [withdrawn and approved anew])"),
        "UPDATE attempts SET content_sha256 = sha256('x') WHERE job_id = [live 0]",
        "UPDATE attempts SET version = 7 WHERE job_id = [live 0]",
        ("UPDATE attempts SET content_sha256 = (SELECT v.content_sha256 FROM post_versions v JOIN"
        " job_contents c ON c.version_id = v.id WHERE c.job_id = [in a form of its own])"
        " WHERE job_id = [in a form of its own]"),
        ("UPDATE posts SET trashed_at = now() - interval '1 day', trashed_by = 'x' WHERE id ="
        " (SELECT post_id FROM jobs WHERE id = [live 0])"),
    ),
    "T33": (
        ("UPDATE post_versions SET content = content || ' ' WHERE id = (SELECT version_id"
        " FROM job_contents WHERE job_id = [live 0])"),
        "UPDATE version_variants SET content = content || ' '",
        "DELETE FROM version_variants",
        ("UPDATE post_versions SET first_comment = 'more' WHERE id = (SELECT version_id"
        " FROM job_contents WHERE job_id = [live 0])"),
        ("UPDATE post_versions SET whole_sha256 = NULL WHERE id = (SELECT version_id"
        " FROM job_contents WHERE job_id = [in a form of its own])"),
    ),
    "C01": (
        "DELETE FROM jobs WHERE id = [live 0]",
        "UPDATE looks SET job_id = 9999 WHERE job_id = [found]",
    ),
    "C02": (
        "UPDATE attempts SET incarnation = 9999 WHERE job_id = [live 0]",
        "UPDATE jobs SET incarnation = 9999 WHERE id = [claimed]",
    ),
    "C03": (
        ("UPDATE incarnations SET ended_at = now() - interval '1 second', end_reason = 'x'"
        " WHERE id = 1"),
        ("UPDATE jobs SET incarnation = (SELECT min(id) FROM incarnations"
        " WHERE ended_at IS NOT NULL) WHERE id = [claimed]"),
    ),
    "C04": (
        "UPDATE jobs SET repeats = 9999 WHERE id = [moved]",
        "UPDATE jobs SET replaces = [live 0] WHERE id = [moved]",
    ),
    "C05": (
        "UPDATE unique_locks SET digest = '\\x00' WHERE job_id = [unique]",
        "UPDATE unique_locks SET job_id = [unique and live] WHERE job_id = [unique]",
    ),
    "C06": (
        "UPDATE gates SET max_in_flight = 1 WHERE channel_id = 1",
        "UPDATE gates SET max_in_flight = 2 WHERE channel_id = 1",
    ),
    "C07": (
        "UPDATE gates SET paused_by = NULL WHERE paused_at IS NOT NULL",
        "UPDATE gates SET blocked_reason = 'because' WHERE blocked_at IS NOT NULL",
    ),
    "C08": (
        "UPDATE orphans SET adopted = false",
        ("INSERT INTO orphans (incarnation, job_id, token, line, adopted)"
        " VALUES ('1', [live 0], gen_random_uuid(), '{}', true)"),
    ),
    "C09": (
        "UPDATE incarnations SET file = 'desk.spool'",
        "INSERT INTO incarnations SELECT * FROM incarnations WHERE id = 1",
    ),
    "C10": (
        "UPDATE incarnations SET declared_gone_at = clock_timestamp() WHERE id = 1",
        ("UPDATE incarnations SET seen_at = now() + interval '1 hour'"
        " WHERE declared_gone_at IS NOT NULL"),
    ),
    "C11": (
        "UPDATE jobs SET channel_id = 9999 WHERE id = [live 0]",
        "UPDATE approvals SET version_id = 9999 WHERE version_id = 1",
        "UPDATE channels SET remote_id = 'r1', platform = 'fake'",
    ),
    "C12": (
        ("UPDATE channels SET workspace_id = 9 WHERE id = (SELECT channel_id FROM jobs WHERE id ="
        " [live 0])"),
        ("UPDATE posts SET workspace_id = 9 WHERE id = (SELECT post_id FROM jobs"
        " WHERE id = [moved])"),
        ("INSERT INTO channels (id, workspace_id, platform, name, remote_id)"
        " OVERRIDING SYSTEM VALUE VALUES (99, 9, 'fake', 'elsewhere', 'e');"
        " INSERT INTO post_targets (post_id, channel_id) SELECT post_id, 99 FROM jobs"
        " WHERE id = [moved]"),
        ("UPDATE job_contents SET content = '{\"media\":[{\"sha256\":\"' || repeat('ab', 32)"
        " || '\"}]}' WHERE job_id = [moved]"),
    ),
    "C13": (
        "UPDATE jobs SET removes = NULL WHERE id = [deleted]",
        "UPDATE jobs SET removes = [live 0] WHERE id = [to be deleted]",
        "UPDATE jobs SET removes = [deleted, live] WHERE id = [to be deleted]",
        "UPDATE jobs SET kind = 'publish' WHERE id = [to be deleted]",
        "UPDATE jobs SET state = 'unknown', remote_id = NULL WHERE id = [to be deleted, live]",
        "DELETE FROM job_events WHERE event = 'withdraw'",
        ("INSERT INTO job_events (job_id, event, who, detail) SELECT removes, 'withdraw', 'x',"
        " jsonb_build_object('how', 'deleted', 'by', key) FROM jobs JOIN job_keys ON job_id = id"
        " WHERE id = [not deleted]"),
        ("UPDATE jobs SET state = 'scheduled', removes = [to be deleted, live]"
        " WHERE id = [not deleted]"),
    ),
}  # fmt: skip
