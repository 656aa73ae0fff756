"""An SMTP relay of aiosmtpd, with encryption and authentication. Prints its port, then each mail as a line of JSON.

usage: smtp_relay.py none|starttls|tls CERTIFICATE KEY [USER PASSWORD]
"""

import asyncio
import json
import logging
import ssl
import sys
import warnings

from aiosmtpd.smtp import SMTP, AuthResult

# The output has mails only.
warnings.simplefilter("ignore")
logging.disable()

kind, certificate, key = sys.argv[1:4]
login = tuple(text.encode() for text in sys.argv[4:6])

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)


class Mails:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody@"):
            return "550 5.1.1 no mailbox of that name\x07"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        print(
            json.dumps(
                {
                    "from": envelope.mail_from,
                    "to": envelope.rcpt_tos,
                    "text": envelope.content.decode(),
                    "encrypted": session.ssl is not None or kind == "tls",
                    "authenticated": bool(session.authenticated),
                }
            ),
            flush=True,
        )
        return "250 accepted"


def authenticate(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == login, handled=False)


options = {"hostname": "relay", "decode_data": False}
if login:
    # Over a connection that is encrypted from the beginning, aiosmtpd does not know of the encryption.
    options |= {"authenticator": authenticate, "auth_required": True, "auth_require_tls": kind == "starttls"}
if kind == "starttls":
    options |= {"tls_context": context, "require_starttls": True}


async def main():
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(Mails(), **options), "127.0.0.1", 0, ssl=context if kind == "tls" else None
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
