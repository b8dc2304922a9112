"""``situ client``: credentials of clients, made, replaced and ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import Exit
from situ.cli.groups import group
from situ.cli.options import common_options, quiet_option

if TYPE_CHECKING:
    from situ.cli.credentials import CredentialChange
    from situ.cli.output import Output

app = group(
    "client",
    """Give clients credentials of their own, and take them back.

    Whoever can read .situ/credentials of a project may act as any of its clients. Who is to act as one of them only is
    given the file that `situ client add` writes, and can do nothing else with it: the bus refuses the rest.
    """,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The client.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Where the credentials are written; by default in .situ/credentials.",
        show_default=False,
    ),
]


@app.command()
@common_options
def add(
    output: Output,
    project: Path | None,
    name: Name,
    out: Out = None,
) -> Exit:
    """Make credentials for a client, which is let in with them from now on.

    The file is the only place where they are: the registry and the server keep a public key. With a NATS server of your
    own, this also says what its configuration needs.

    \b
    Examples:
      situ client add reader-7
      situ client add reader-7 --out reader-7.creds
    """
    from situ.cli.credentials import add_client

    return _told(output, add_client(project, name, out))


@app.command()
@common_options
def rotate(
    output: Output,
    project: Path | None,
    name: Name,
    out: Out = None,
) -> Exit:
    """Make other credentials for a client, and end those it has.

    Connections with the old ones are closed at once. A client whose file is replaced connects again by itself.

    \b
    Examples:
      situ client rotate reader-7
    """
    from situ.cli.credentials import rotate_client

    return _told(output, rotate_client(project, name, out))


@app.command()
@common_options
def remove(
    output: Output,
    project: Path | None,
    name: Name,
) -> Exit:
    """End the credentials of a client: its connections are closed, and it is not let in again.

    What it declared itself is withdrawn with that. What the project declares for it stays, and so do its memberships in
    scopes; it is said what that is.

    \b
    Examples:
      situ client remove reader-7
    """
    from situ.cli.credentials import remove_client

    return _told(output, remove_client(project, name))


@app.command("list")
@common_options
def list_clients(output: Output, project: Path | None) -> Exit:
    """List the clients that have credentials, since when, and the public keys they are known by.

    \b
    Examples:
      situ client list
    """
    from situ.cli.registry import registry_of

    with registry_of(project) as registered:
        found = registered.registry.principals.list()

    def data() -> list[dict[str, Any]]:
        return [
            {"name": each.name, "key": each.principal.key, "keys": each.version, "since": each.at.isoformat()}
            | {"by": each.who, "rights": each.principal.rights}
            for each in found
        ]

    def shown() -> Any:
        from situ.cli.render.registry import show_clients

        return show_clients(found)

    output.answer(data, shown)
    return Exit.DONE


@app.command()
@quiet_option
def configuration(output: Output, project: Path | None) -> Exit:
    """Print what the configuration of a NATS server of your own needs: its users, and what each may do.

    It goes into the file of the server, as in `authorization { include "users.conf" }`. The server takes it when it is
    told to read its configuration again, as by `nats-server --signal reload`.

    \b
    Examples:
      situ client configuration > users.conf
    """
    from situ.cli.credentials import configuration_of

    output.text(configuration_of(project))
    return Exit.DONE


def _told(output: Output, change: CredentialChange) -> Exit:
    if output.json:
        output.data(change.as_json())
        return Exit.DONE
    output.say(change.said)
    for each in change.notes:
        output.note(each)
    return Exit.DONE
