"""Whether our roles may do what they must, and no more.

Workers and pages own nothing and cannot take back what the journal holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import text

from publisher.db.roles import SCHEMA, Role
from publisher.doctor.finding import Finding, error, warning
from publisher.doctor.schema import Comparison
from publisher.doctor.ward import Ward
from publisher.words import _

_POWERS = text("""
SELECT rolname, concat_ws(', ',
           CASE WHEN rolsuper THEN 'SUPERUSER' END, CASE WHEN rolbypassrls THEN 'BYPASSRLS' END,
           CASE WHEN rolcreaterole THEN 'CREATEROLE' END,
           CASE WHEN rolcreatedb THEN 'CREATEDB' END,
           CASE WHEN rolreplication THEN 'REPLICATION' END) AS powers
  FROM pg_roles WHERE rolname = ANY(:roles) ORDER BY 1
""")
_LOGIN = text("SELECT session_user::text, rolsuper FROM pg_roles WHERE rolname = session_user")
_MEMBERS = text("""
SELECT m.rolname, g.rolname FROM pg_roles m JOIN pg_roles g ON g.oid <> m.oid
 WHERE m.rolname = ANY(:roles) AND NOT m.rolsuper AND pg_has_role(m.oid, g.oid, 'MEMBER')
   AND g.rolname <> ALL (:harmless)
 ORDER BY 1, 2
""")
_HARMLESS: Final = [
    "pg_monitor",
    "pg_read_all_data",
    "pg_read_all_settings",
    "pg_read_all_stats",
    "pg_stat_scan_tables",
]
"""They only see more."""


def roles(ward: Ward) -> Iterator[Finding]:
    """Roles without powers of their own, and none a member of another."""
    with ward.reading() as conn:
        powers = conn.execute(_POWERS, {"roles": [*Role]}).all()
        login, is_super = conn.execute(_LOGIN).one()
        users = [Role.ENGINE, Role.APP]
        members = conn.execute(_MEMBERS, {"roles": users, "harmless": _HARMLESS}).all()
    for role, has in powers:
        if has:
            without = " ".join(f"NO{power}" for power in has.split(", "))
            yield error(
                "role_powerful",
                _("Role {role} has {powers}, and needs none of it.").format(role=role, powers=has),
                _("Run: ALTER ROLE {role} {without}").format(role=role, without=without),
            )
    for member, role in members:
        yield error(
            "role_member",
            _("Role {member} may act as {role}.").format(member=member, role=role),
            _("Run: REVOKE {role} FROM {member}").format(role=role, member=member),
        )
    if is_super:
        yield warning(
            "login_superuser",
            _("We log in as {login}, a superuser, whom nothing in the database stops.").format(
                login=login
            ),
            _("Give each process a login of its own with one role; see publisher db upgrade."),
        )


_OWNERS = text("""
SELECT c.relname::text AS name, c.relowner::regrole::text AS owner FROM pg_class c
 WHERE c.relnamespace = to_regnamespace(:schema) AND c.relkind NOT IN ('t', 'c')
   AND c.relowner::regrole::text <> :owner
UNION ALL
SELECT p.oid::regprocedure::text, p.proowner::regrole::text FROM pg_proc p
 WHERE p.pronamespace = to_regnamespace(:schema) AND p.proowner::regrole::text <> :owner
UNION ALL
SELECT 'schema ' || n.nspname, n.nspowner::regrole::text FROM pg_namespace n
 WHERE n.nspname = :schema AND n.nspowner::regrole::text <> :owner
 ORDER BY 1
""")
_OWNED = text("""
SELECT DISTINCT r.rolname, pg_describe_object(d.classid, d.objid, d.objsubid)
  FROM pg_shdepend d JOIN pg_roles r ON r.oid = d.refobjid
 WHERE d.refclassid = 'pg_authid'::regclass AND d.deptype = 'o' AND r.rolname = ANY(:roles)
   AND d.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
 ORDER BY 1, 2
""")


def owners(ward: Ward) -> Iterator[Finding]:
    """Everything of ours belongs to the owner, and the other two own nothing anywhere."""
    with ward.reading() as conn:
        strange = conn.execute(_OWNERS, {"schema": SCHEMA, "owner": Role.OWNER}).all()
        owned = conn.execute(_OWNED, {"roles": [Role.ENGINE, Role.APP]}).all()
    for name, owner in strange:
        yield error(
            "owner_other",
            _("{name} belongs to {owner}, who may change or drop it.").format(
                name=name, owner=owner
            ),
            _("Run ALTER … OWNER TO {owner} for it.").format(owner=Role.OWNER),
        )
    for role, what in owned:
        yield error(
            "role_owns",
            _("Role {role} owns {what}.").format(role=role, what=what),
            _("Run: REASSIGN OWNED BY {role} TO {owner}").format(role=role, owner=Role.OWNER),
        )


def grants(ward: Ward) -> Iterator[Finding]:
    """What workers, pages and everybody else may do, against what the migrations gave."""
    with ward.reading() as conn:
        found = Comparison(conn)
    there, wanted = found.there["grants"], found.wanted["grants"]
    for name in sorted(there.keys() | wanted.keys()):
        has, needs = (_privileges(grants.get(name, "")) for grants in (there, wanted))
        place, _to, role = name.rpartition(" to ")
        if has - needs:
            listed = ", ".join(sorted(has - needs))
            yield error(
                "grant_extra",
                _("{role} may {what} on {place}, and must not.").format(
                    role=role, what=listed, place=place
                ),
                _("As {owner}: REVOKE {what} on {place} from it.").format(
                    owner=Role.OWNER, what=listed, place=place
                ),
            )
        if needs - has:
            listed = ", ".join(sorted(needs - has))
            yield error(
                "grant_missing",
                _("{role} may not {what} on {place}, and must.").format(
                    role=role, what=listed, place=place
                ),
                _("As {owner}: GRANT {what} on {place} to it.").format(
                    owner=Role.OWNER, what=listed, place=place
                ),
            )


def _privileges(listed: str) -> set[str]:
    return set(listed.split(", ")) if listed else set()


_OTHERS = text("""
SELECT c.relname::text AS place, e.grantee::regrole::text AS role,
       string_agg(DISTINCT e.privilege_type, ', ') AS what
  FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) AS e
 WHERE c.relnamespace = to_regnamespace(:schema) AND e.grantee <> 0
   AND e.grantee::regrole::text <> ALL (:roles)
   AND e.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER')
 GROUP BY 1, 2 ORDER BY 1, 2
""")


def others(ward: Ward) -> Iterator[Finding]:
    """Whether somebody who is none of our roles may write to our tables; reading is theirs."""
    with ward.reading() as conn:
        rows = conn.execute(_OTHERS, {"schema": SCHEMA, "roles": [*Role]}).all()
    for place, role, what in rows:
        yield warning(
            "grant_to_others",
            _("{role} may {what} on {place}, past every rule of ours.").format(
                role=role, what=what, place=place
            ),
            _("Revoke it, or give that login one of our roles."),
        )
