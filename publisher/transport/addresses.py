"""Where a name may lead when it came by page, API or file.

The name is resolved once, each address it leads to is checked, and the call goes to the checked
address: a name that leads elsewhere a moment later (DNS rebinding) changes nothing. Follows the
OWASP cheat sheet on server-side request forgery and IANA's special-purpose registries.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class AddressRefused(Exception):
    """A name that leads where we do not go; the sentence says which address and what to set."""


# Looked at before Python's own registries, whose words are less to the point. A network that
# wraps an IPv4 address is refused as a whole: what it wraps is looked up elsewhere.
_REFUSED: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), what)
    for network, what in (
        ("169.254.169.254/32", "a cloud's metadata address"),
        ("100.100.100.200/32", "a cloud's metadata address"),
        ("168.63.129.16/32", "a cloud's metadata address"),
        ("192.0.0.192/32", "a cloud's metadata address"),
        ("fd00:ec2::254/128", "a cloud's metadata address"),
        ("127.0.0.0/8", "a loopback address"),
        ("::1/128", "a loopback address"),
        ("0.0.0.0/8", "an unspecified address"),
        ("::/128", "an unspecified address"),
        ("169.254.0.0/16", "a link-local address"),
        ("fe80::/10", "a link-local address"),
        ("10.0.0.0/8", "a private address"),
        ("172.16.0.0/12", "a private address"),
        ("192.168.0.0/16", "a private address"),
        ("100.64.0.0/10", "an address shared by a carrier's customers"),
        ("fc00::/7", "a private address"),
        ("fec0::/10", "a private address"),
        ("224.0.0.0/4", "a multicast address"),
        ("ff00::/8", "a multicast address"),
        ("::ffff:0:0/96", "an IPv4 address inside an IPv6 one"),
        ("::/96", "an IPv4 address inside an IPv6 one"),
        ("64:ff9b::/96", "an IPv4 address inside an IPv6 one"),
        ("64:ff9b:1::/48", "an IPv4 address inside an IPv6 one"),
        ("2002::/16", "an IPv4 address inside an IPv6 one"),
        ("2001::/32", "an IPv4 address inside an IPv6 one"),
    )
)


def refusal(address: Address, allowed: Sequence[Network]) -> str | None:
    """Say what is wrong with ``address``; None when it is public or inside ``allowed``.

    An IPv6 address that maps an IPv4 one is allowed by the network of either.
    """
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    if any(address in network or (mapped and mapped in network) for network in allowed):
        return None
    for network, what in _REFUSED:
        if address in network:
            return what
    if not address.is_global or address.is_multicast:
        return "a reserved address"
    return None


def checked(host: str, port: int, allowed: Sequence[Network]) -> tuple[str, ...]:
    """Resolve ``host`` once and return its addresses, all of them checked.

    One bad address is enough to refuse the name. Raises ``AddressRefused``, and ``OSError`` when
    the name leads nowhere.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
    for text in addresses:
        address = ip_address(text.partition("%")[0])
        what = refusal(address, allowed)
        if what is not None:
            raise AddressRefused(_sentence(host, address, what))
    return addresses


def _sentence(host: str, address: Address, what: str) -> str:
    return (
        f"{host} leads to {address}, {what}, where addresses from a page, the API or a file may "
        f"not lead. If it is yours, set PUBLISHER_ALLOWED_NETWORKS to include "
        f"{address}/{address.max_prefixlen} or its network."
    )
