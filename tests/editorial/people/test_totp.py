"""The second factor: on by a first code, each code once, and what to do without the phone."""

from __future__ import annotations

import time

import pyotp
import pytest
from sqlalchemy.exc import DBAPIError

from publisher.editorial.people import sessions, sign_in, throttle, totp, users
from publisher.editorial.people.sessions import Begun
from publisher.editorial.people.sign_in import SessionOver
from publisher.editorial.people.throttle import Throttled
from publisher.editorial.people.totp import CodeRefused
from publisher.engine.errors import Conflict
from publisher.vault import Vault, VaultError
from tests.editorial.people.conftest import Town

ANN = "ann@example.org"
SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
"""RFC 6238, appendix B: ``12345678901234567890``."""
NO_STEP = "UPDATE users SET totp_step = NULL, totp_confirmed_at = clock_timestamp()"


def turn_on(town: Town, email: str = ANN) -> tuple[pyotp.TOTP, tuple[str, ...], Begun]:
    """The app, the recovery codes and a session of somebody whose second factor is on."""
    begun = town.join(email)
    with town.engine.begin() as conn:
        offered = totp.offer(conn, town.vault, begun.session.user_id)
    app = pyotp.TOTP(offered.secret)
    codes = sign_in.confirm_totp(town.engine, town.vault, begun.session, code=app.now())
    return app, codes, begun


def with_code(town: Town, half: Begun, code: str) -> Begun:
    return sign_in.with_code(town.engine, town.vault, token=half.token, code=code)


@pytest.mark.parametrize(
    ("at", "code"), [(59, "287082"), (1111111109, "081804"), (20000000000, "353130")]
)
def test_codes_are_those_of_rfc_6238(at: int, code: str) -> None:
    assert totp.matching_step(SECRET, code, at) == at // 30


def test_a_clock_may_be_off_by_one_step_and_no_more() -> None:
    code = pyotp.TOTP(SECRET).generate_otp(1000)
    found = [totp.matching_step(SECRET, code, step * 30 + 7) for step in range(998, 1003)]
    assert found == [None, 1000, 1000, 1000, None]


@pytest.mark.parametrize(
    "code", ["", "12345", "1234567", "abcdef", "١٢٣٤٥٦", "\ud800", "0" * 10**6]
)
def test_what_is_no_code_is_none(code: str) -> None:
    assert totp.matching_step(SECRET, code, 59) is None


def test_with_it_a_password_alone_opens_nothing(town: Town) -> None:
    turn_on(town)
    half = town.sign_in(ANN)
    assert half.session.awaits_code
    with town.engine.begin() as conn:
        assert sessions.find(conn, half.token) is None
    with pytest.raises(CodeRefused):
        with_code(town, half, "000000")


def test_the_code_makes_a_whole_session_under_another_token(town: Town) -> None:
    app, _, _ = turn_on(town)
    town.do(NO_STEP)
    half = town.sign_in(ANN)
    whole = with_code(town, half, app.now())
    assert whole.token != half.token
    whole.session.require_recent()
    with town.engine.begin() as conn:
        assert sessions.find(conn, whole.token) is not None
    with pytest.raises(SessionOver):
        with_code(town, half, app.now())


def test_a_code_works_once_whoever_asks(town: Town) -> None:
    """The one that turned it on is used; of five at once, one comes in."""
    app, _, _ = turn_on(town)
    code = app.now()
    with pytest.raises(CodeRefused):
        with_code(town, town.sign_in(ANN), app.at(time.time() - 30))
    town.do(NO_STEP)
    halves = [town.sign_in(ANN) for _ in range(4)]
    came = town.at_once(4, lambda number: with_code(town, halves[number], code))
    assert sum(isinstance(one, Begun) for one in came) == 1, came
    assert sum(isinstance(one, CodeRefused) for one in came) == 3, came


def test_codes_cannot_be_tried_without_end(town: Town) -> None:
    turn_on(town)
    half = town.sign_in(ANN)
    came = town.at_once(12, lambda number: with_code(town, half, f"{number:06d}"))
    assert sum(isinstance(one, CodeRefused) for one in came) == 5, came
    assert sum(isinstance(one, Throttled) for one in came) == 7, came


def test_the_question_for_a_code_is_over_after_ten_minutes(town: Town) -> None:
    app, _, _ = turn_on(town)
    half = town.sign_in(ANN)
    town.do(
        "UPDATE sessions SET created_at = created_at - interval '10 minutes',"
        " expires_at = clock_timestamp() WHERE awaits_code"
    )
    with pytest.raises(SessionOver):
        with_code(town, half, app.now())


def test_it_counts_only_once_a_code_showed_that_the_app_has_it(town: Town) -> None:
    begun = town.join(ANN)
    with town.engine.begin() as conn:
        totp.offer(conn, town.vault, begun.session.user_id)
    with pytest.raises(CodeRefused):
        sign_in.confirm_totp(town.engine, town.vault, begun.session, code="000000")
    assert not town.sign_in(ANN).session.awaits_code


def test_turning_it_on_ends_the_other_sessions(town: Town) -> None:
    other = town.join(ANN)
    this = town.sign_in(ANN)
    with town.engine.begin() as conn:
        offered = totp.offer(conn, town.vault, this.session.user_id)
    code = pyotp.TOTP(offered.secret).now()
    sign_in.confirm_totp(town.engine, town.vault, this.session, code=code)
    with town.engine.begin() as conn:
        assert sessions.find(conn, other.token) is None
        assert sessions.find(conn, this.token) is not None


def test_it_is_not_replaced_while_it_is_on(town: Town) -> None:
    _, _, begun = turn_on(town)
    with town.engine.begin() as conn, pytest.raises(Conflict):
        totp.offer(conn, town.vault, begun.session.user_id)
    with pytest.raises(Conflict):
        sign_in.confirm_totp(town.engine, town.vault, begun.session, code="000000")


def test_a_recovery_code_stands_in_once(town: Town) -> None:
    _, codes, begun = turn_on(town)
    assert len({*codes}) == 10
    assert with_code(town, town.sign_in(ANN), codes[0].upper())
    with pytest.raises(CodeRefused):
        with_code(town, town.sign_in(ANN), codes[0])
    came = town.at_once(4, lambda _: with_code(town, town.sign_in(ANN), codes[1]))
    assert sum(isinstance(one, Begun) for one in came) == 1, came
    with town.engine.begin() as conn:
        assert totp.recovery_codes_left(conn, begun.session.user_id) == 8


def test_fresh_recovery_codes_end_the_earlier(town: Town) -> None:
    _, codes, begun = turn_on(town)
    with town.engine.begin() as conn:
        fresh = totp.new_recovery_codes(conn, begun.session.user_id, who="Ann", subject=ANN)
    with pytest.raises(CodeRefused):
        with_code(town, town.sign_in(ANN), codes[0])
    assert with_code(town, town.sign_in(ANN), fresh[0])


def test_anothers_recovery_code_opens_nothing(town: Town) -> None:
    _, codes, _ = turn_on(town)
    turn_on(town, "bob@example.org")
    with pytest.raises(CodeRefused):
        with_code(town, town.sign_in("bob@example.org"), codes[0])


def test_a_code_shows_once_more_who_one_is(town: Town) -> None:
    app, _, begun = turn_on(town)
    town.do(NO_STEP)
    town.do("UPDATE sessions SET reauthenticated_at = NULL")
    sign_in.again_with_code(town.engine, town.vault, begun.session, code=app.now())
    with town.engine.begin() as conn:
        found = sessions.find(conn, begun.token)
    assert found is not None
    found.require_recent()


def test_an_operator_turns_it_off_for_who_lost_everything(town: Town) -> None:
    _, _, begun = turn_on(town)
    with town.engine.begin() as conn:
        assert users.forget_totp(conn, town.user(ANN), who="root")
        assert not users.forget_totp(conn, town.user(ANN), who="root")
        assert totp.recovery_codes_left(conn, begun.session.user_id) == 0
    assert not town.sign_in(ANN).session.awaits_code


def test_the_secret_opens_for_its_person_alone(town: Town) -> None:
    app, _, begun = turn_on(town)
    ((sealed,),) = town.all("SELECT totp_sealed FROM users")
    user_id = begun.session.user_id
    assert town.vault.open_for_user(sealed, user_id=user_id) == app.secret
    other = Vault(bytes([1]) * 32, "d0")
    for vault, whose in ((town.vault, user_id + 1), (other, user_id)):
        with pytest.raises(VaultError, match="forget-totp"):
            vault.open_for_user(sealed, user_id=whose)
    with pytest.raises(VaultError):
        town.vault.open(sealed, channel_id=user_id)


def test_a_moved_deployment_seals_it_anew(town: Town) -> None:
    """What the key at hand does not open stays: a recovery code still does."""
    app, codes, begun = turn_on(town)
    moved = town.vault.for_deployment("d1")
    with town.engine.begin() as conn:
        assert totp.reseal(conn, town.vault, moved) == 1
        assert totp.reseal(conn, None, town.vault) == 0
    ((sealed,),) = town.all("SELECT totp_sealed FROM users")
    assert moved.open_for_user(sealed, user_id=begun.session.user_id) == app.secret
    half = town.sign_in(ANN)
    with pytest.raises(VaultError):
        with_code(town, half, app.now())
    assert with_code(town, half, codes[0])


def test_the_database_takes_no_used_step_back(town: Town) -> None:
    turn_on(town)
    with pytest.raises(DBAPIError, match="stays used"):
        town.do("UPDATE users SET totp_step = totp_step - 1")
    with pytest.raises(DBAPIError, match="stays used"):
        town.do("UPDATE users SET totp_step = NULL")


def test_a_right_code_opens_the_door_that_wrong_ones_were_shutting(town: Town) -> None:
    app, _, begun = turn_on(town)
    town.do(NO_STEP)
    half = town.sign_in(ANN)
    for _ in range(4):
        with pytest.raises(CodeRefused):
            with_code(town, half, "000000")
    assert with_code(town, half, app.now())
    key = throttle.second_factor(begun.session.user_id).key
    assert not town.all("SELECT 1 FROM login_failures WHERE key = :key", key=key)
