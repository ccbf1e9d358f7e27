"""Signing in by an OpenID provider, against a real one on this machine."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from publisher.config import Settings
from publisher.editorial.people import oidc, sessions, sign_in, users
from publisher.editorial.people.oidc import Departure, NotInvited, ReturnRefused
from publisher.editorial.people.provider import Provider, ProviderRefused, is_safe
from publisher.editorial.people.roles import Role
from publisher.editorial.people.sessions import Begun, Method, ReauthenticationNeeded
from publisher.editorial.people.sign_in import SignInRefused
from publisher.transport import Transport
from tests.editorial.people.conftest import PASSWORD, Town
from tests.editorial.people.idp import CLIENT, SECRET, Idp, unsigned

ANN = "ann@example.org"
BACK = "http://127.0.0.1:8800/oidc/return"


@pytest.fixture
def idp() -> Iterator[Idp]:
    made = Idp()
    with made.serving():
        yield made


@pytest.fixture
def provider(idp: Idp, settings: Settings) -> Iterator[Provider]:
    configured = settings.model_copy(
        update={
            "oidc_issuer": idp.issuer,
            "oidc_client_id": CLIENT,
            "oidc_client_secret": SecretStr(SECRET),
        }
    )
    transport = Transport(configured)
    made = Provider.from_settings(configured, transport)
    assert made is not None
    yield made
    transport.close()


def depart(town: Town, provider: Provider, *, anew: bool = False) -> Departure:
    return oidc.depart(town.engine, provider, redirect_uri=BACK, anew=anew)


def arrive(town: Town, provider: Provider, left: Departure, given: dict[str, str]) -> Begun:
    return oidc.arrive(town.engine, provider, token=left.token, given=given, redirect_uri=BACK)


def come_in(town: Town, provider: Provider, idp: Idp, *, anew: bool = False) -> Begun:
    left = depart(town, provider, anew=anew)
    return arrive(town, provider, left, idp.browse(left.url))


def test_it_is_there_only_where_it_is_configured(settings: Settings) -> None:
    assert Provider.from_settings(settings, Transport(settings)) is None
    with pytest.raises(ValidationError, match="all three, or none"):
        Settings(oidc_issuer="https://id.example.org")
    with pytest.raises(ValidationError, match="https"):
        Settings(
            oidc_issuer="http://id.example.org",
            oidc_client_id="x",
            oidc_client_secret=SecretStr("y"),
        )


def test_an_invitation_is_accepted_by_its_address_and_then_by_who_it_was(
    town: Town, provider: Provider, idp: Idp
) -> None:
    """The provider's own name for somebody counts from then on, whatever address they have."""
    token = town.invite(ANN)
    begun = come_in(town, provider, idp)
    assert begun.session.method is Method.OIDC
    assert begun.session.user_id == town.user(ANN).id
    assert town.user(ANN).has_identity
    with pytest.raises(sign_in.links.LinkUnusable):
        sign_in.by_link(town.engine, token=token, password=PASSWORD)
    idp.email = "married@example.org"
    assert come_in(town, provider, idp).session.user_id == begun.session.user_id
    kinds = [row.event for row in town.all("SELECT event FROM people_events ORDER BY id")]
    assert kinds.count("identity_linked") == 1
    assert kinds.count("signed_in") == 2


@pytest.mark.parametrize("basic", [True, False])
def test_the_client_shows_itself_as_the_provider_wants(
    town: Town, provider: Provider, idp: Idp, *, basic: bool
) -> None:
    idp.basic_only = basic
    town.invite(ANN)
    assert come_in(town, provider, idp)


def test_nobody_comes_in_uninvited(town: Town, provider: Provider, idp: Idp) -> None:
    with pytest.raises(NotInvited):
        come_in(town, provider, idp)
    assert not town.all("SELECT 1 FROM users")


@pytest.mark.parametrize(
    "claims", [{"email_verified": False}, {"email_verified": None}, {"email_verified": "true"},
               {"email": None}, {"email": "ann@example.org\x00"}]
)  # fmt: skip
def test_an_address_that_is_not_verified_accepts_nothing(
    town: Town, provider: Provider, idp: Idp, claims: dict[str, Any]
) -> None:
    town.invite(ANN)
    idp.changes = claims
    with pytest.raises(NotInvited):
        come_in(town, provider, idp)


def test_an_account_in_use_is_not_handed_to_its_address(
    town: Town, provider: Provider, idp: Idp
) -> None:
    town.join(ANN)
    with pytest.raises(NotInvited):
        come_in(town, provider, idp)


def test_one_invitation_is_for_one(town: Town, provider: Provider, idp: Idp) -> None:
    town.invite(ANN)
    come_in(town, provider, idp)
    idp.subject = "somebody-else"
    with pytest.raises(NotInvited):
        come_in(town, provider, idp)


def test_who_is_disabled_does_not_come_in(town: Town, provider: Provider, idp: Idp) -> None:
    town.invite(ANN, Role.VIEWER)
    come_in(town, provider, idp)
    with town.engine.begin() as conn:
        users.disable(conn, town.user(ANN), who="root")
    with pytest.raises(SignInRefused):
        come_in(town, provider, idp)


def test_one_comes_back_once(town: Town, provider: Provider, idp: Idp) -> None:
    town.invite(ANN)
    left = depart(town, provider)
    given = idp.browse(left.url)
    came = town.at_once(6, lambda _: arrive(town, provider, left, given))
    assert sum(isinstance(one, Begun) for one in came) == 1, came
    assert sum(isinstance(one, ReturnRefused) for one in came) == 5, came
    assert idp.asked.count("/token") == 1


def test_what_began_in_another_browser_ends_there(town: Town, provider: Provider, idp: Idp) -> None:
    """A link with the attacker's own code signs no victim in as the attacker."""
    town.invite(ANN)
    attackers, victims = depart(town, provider), depart(town, provider)
    given = idp.browse(attackers.url)
    for token in (victims.token, "", "pbo_" + "0" * 64, "\ud800"):
        with pytest.raises(ReturnRefused):
            arrive(town, provider, Departure("", token), given)
    with pytest.raises(ReturnRefused):
        arrive(town, provider, attackers, {**given, "iss": "https://evil.example.org"})


def test_whoever_was_too_long_away_begins_again(town: Town, provider: Provider, idp: Idp) -> None:
    town.invite(ANN)
    left = depart(town, provider)
    given = idp.browse(left.url)
    town.do(
        "UPDATE oidc_departures SET created_at = created_at - interval '10 minutes',"
        " expires_at = clock_timestamp()"
    )
    with pytest.raises(ReturnRefused):
        arrive(town, provider, left, given)


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example.org"},
        {"iss": None},
        {"aud": "another"},
        {"aud": None},
        {"aud": ["desk", "another"], "azp": "another"},
        {"nonce": "another"},
        {"nonce": None},
        {"exp": 1},
        {"exp": None},
        {"exp": "soon"},
        {"iat": None},
        {"iat": int(time.time()) - 3600},
        {"iat": int(time.time()) + 3600},
        {"nbf": int(time.time()) + 3600},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "x" * 256},
        {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_this_sign_in_lets_nobody_in(
    town: Town, provider: Provider, idp: Idp, claims: dict[str, Any]
) -> None:
    town.invite(ANN)
    idp.changes = claims
    with pytest.raises(ProviderRefused) as refused:
        come_in(town, provider, idp)
    assert refused.value.code == "provider-refused"
    assert not town.all("SELECT 1 FROM sessions")


def test_a_token_that_another_key_signed_lets_nobody_in(
    town: Town, provider: Provider, idp: Idp
) -> None:
    town.invite(ANN)
    idp.signer = idp.key
    idp.new_key()
    with pytest.raises(ProviderRefused):
        come_in(town, provider, idp)


@pytest.mark.parametrize("private", ["the public key", "the client's secret"])
def test_a_shared_secret_signs_nothing(
    town: Town, provider: Provider, idp: Idp, private: str
) -> None:
    """Neither what everybody knows, nor what leaks from our own settings."""
    town.invite(ANN)
    public = idp.key.as_pem(private=False)
    idp.shared_secret = public if private == "the public key" else SECRET.encode()
    with pytest.raises(ProviderRefused) as refused:
        come_in(town, provider, idp)
    assert "UnsupportedAlgorithm" in refused.value.why


@pytest.mark.parametrize("token", ["", "a.b.c", "x" * 100_000, "none"])
def test_what_nobody_signed_lets_nobody_in(
    town: Town, provider: Provider, idp: Idp, token: str
) -> None:
    town.invite(ANN)
    left = depart(town, provider)
    given = idp.browse(left.url)
    asked = idp._codes[given["code"]]
    now = int(time.time())
    claims = {
        "iss": idp.issuer, "sub": "x", "aud": CLIENT, "iat": now, "exp": now + 300,
        "nonce": asked["nonce"], "email": ANN, "email_verified": True,
    }  # fmt: skip
    idp.id_token = unsigned(claims) if token == "none" else token
    with pytest.raises(ProviderRefused):
        arrive(town, provider, left, given)


def test_keys_that_changed_are_asked_for_again(
    town: Town, provider: Provider, idp: Idp, monkeypatch: pytest.MonkeyPatch
) -> None:
    town.invite(ANN)
    come_in(town, provider, idp)
    come_in(town, provider, idp)
    assert idp.asked.count("/keys") == 1
    assert idp.asked.count("/.well-known/openid-configuration") == 1
    idp.new_key()
    with pytest.raises(ProviderRefused):  # asked a moment ago: not again for every forged token
        come_in(town, provider, idp)
    assert idp.asked.count("/keys") == 1
    provider._kept = {url: (at - 61, said) for url, (at, said) in provider._kept.items()}
    assert come_in(town, provider, idp)
    assert idp.asked.count("/keys") == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://evil.example.org"},
        {"authorization_endpoint": "http://id.example.org/authorize"},
        {"authorization_endpoint": None},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
)
def test_a_document_that_is_anothers_or_unsafe_is_refused(
    town: Town, provider: Provider, idp: Idp, changes: dict[str, Any]
) -> None:
    idp.document_changes = changes
    with pytest.raises(ProviderRefused) as refused:
        depart(town, provider)
    assert refused.value.code == "provider-unreachable"


def test_a_provider_that_is_not_there_says_so(town: Town, provider: Provider) -> None:
    provider._kept = {}
    provider.issuer = "http://127.0.0.1:9"
    with pytest.raises(ProviderRefused) as refused:
        depart(town, provider)
    assert refused.value.code == "provider-unreachable"


@pytest.mark.parametrize(
    "given", [{"error": "access_denied"}, {"error": "<script>"}, {}, {"code": "x" * 5000}]
)
def test_who_is_turned_away_there_comes_in_nowhere(
    town: Town, provider: Provider, idp: Idp, given: dict[str, str]
) -> None:
    left = depart(town, provider)
    state = idp.browse(left.url)["state"]
    with pytest.raises(ProviderRefused) as refused:
        arrive(town, provider, left, {"state": state, **given})
    assert "<" not in str(refused.value) + refused.value.why


def test_showing_anew_who_one_is_counts_only_where_the_provider_asked_again(
    town: Town, provider: Provider, idp: Idp
) -> None:
    town.invite(ANN)
    with pytest.raises(ReauthenticationNeeded):
        come_in(town, provider, idp).session.require_recent()
    come_in(town, provider, idp, anew=True).session.require_recent()
    idp.changes = {"auth_time": int(time.time()) - 3600}
    with pytest.raises(ReauthenticationNeeded):
        come_in(town, provider, idp, anew=True).session.require_recent()


def test_a_second_factor_here_is_asked_for_all_the_same(
    town: Town, provider: Provider, idp: Idp
) -> None:
    town.invite(ANN)
    begun = come_in(town, provider, idp)
    town.do(
        "UPDATE users SET totp_sealed = :sealed, totp_confirmed_at = clock_timestamp()",
        sealed=town.vault.seal_for_user("GEZDGNBVGY3TQOJQ", user_id=begun.session.user_id),
    )
    half = come_in(town, provider, idp)
    assert half.session.awaits_code
    with town.engine.begin() as conn:
        assert sessions.find(conn, half.token) is None


def test_nothing_that_completes_a_sign_in_is_in_the_database(
    town: Town, provider: Provider, idp: Idp
) -> None:
    left = depart(town, provider)
    kept = "".join(str(tuple(row)) for row in town.all("SELECT t::text FROM oidc_departures t"))
    asked = idp._codes[idp.browse(left.url)["code"]]
    for secret in (left.token, asked["state"], asked["nonce"], asked["code_challenge"]):
        assert secret not in kept
        assert base64.b16encode(secret.encode()).decode().lower() not in kept
    assert left.token not in repr(left)


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://id.example.org/x", True),
        ("http://127.0.0.1:99/x", True),
        ("http://localhost/x", True),
        ("http://127.0.0.1.evil.example.org/x", False),
        ("http://id.example.org/x", False),
        ("ftp://127.0.0.1/x", False),
        ("https://", False),
        ("https://[half", False),
    ],
)
def test_what_can_be_read_on_the_way_is_not_safe(url: str, *, safe: bool) -> None:
    assert is_safe(url) is safe
