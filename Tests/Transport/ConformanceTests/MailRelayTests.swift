import Foundation
import TestCertificates
import Testing
import TrebuchetServices

/// `SMTPMailer` against the SMTP server of PyPI's `aiosmtpd`.
@Suite(.timeLimit(.minutes(5))) struct MailRelayTests {
    private struct Mail: Decodable, Equatable {
        var from: String
        var to: [String]
        var text: String
        var encrypted: Bool
        var authenticated: Bool
    }

    private struct Relay {
        let peer: PythonPeer
        let port: Int

        init(_ kind: SMTPMailer.Encryption, login: [String] = []) async throws {
            peer = try PythonPeer(
                "smtp_relay",
                [kind.rawValue, TestCertificate.path("server.pem"), TestCertificate.path("server.key")] + login)
            let line = await peer.nextLine()
            port = try #require(line.flatMap { Int($0) }, "\(line ?? "no line")")
        }

        func nextMail() async throws -> Mail {
            let line = try #require(await peer.nextLine())
            return try JSONDecoder().decode(Mail.self, from: Data(line.utf8))
        }
    }

    @Test(
        "a mail is delivered with each kind of encryption, with and without a login",
        arguments: SMTPMailer.Encryption.allCases)
    func delivered(_ encryption: SMTPMailer.Encryption) async throws {
        for login in [nil, SMTPMailer.Login(user: "app", password: "p\u{E4} \"word\"")] {
            let relay = try await Relay(encryption, login: login == nil ? [] : ["app", "p\u{E4} \"word\""])
            let mailer = SMTPMailer(
                host: "localhost", port: relay.port, encryption: encryption, login: login,
                caFile: encryption == .none ? nil : TestCertificate.path("ca.pem"), sender: "us@b.c")
            for number in 1...2 {
                try await mailer.send("01234\(number)", to: "ada@d.e")
                let mail = try await relay.nextMail()
                #expect(mail.from == "us@b.c" && mail.to == ["ada@d.e"])
                #expect(mail.encrypted == (encryption != .none) && mail.authenticated == (login != nil))
                #expect(mail.text.contains("Subject: Your code: 01234\(number)\r\n"))
                #expect(mail.text.contains("\r\n01234\(number) is your code"))
            }
        }
    }

    @Test("a wrong password is an error that does not contain it")
    func wrongPassword() async throws {
        let relay = try await Relay(.startTLS, login: ["app", "right"])
        let mailer = SMTPMailer(
            host: "localhost", port: relay.port, encryption: .startTLS, login: .init(user: "app", password: "wrong!"),
            caFile: TestCertificate.path("ca.pem"))
        let error = await #expect(throws: MailError.self) { try await mailer.send("1", to: "ada@d.e") }
        #expect(
            error?.description.contains("the mail relay localhost:\(relay.port): ") == true,
            "\(String(describing: error))")
        #expect(error?.description.contains("Login denied") == true && error?.description.contains("wrong!") == false)
    }

    @Test("an error has the reply of the relay")
    func refused() async throws {
        let relay = try await Relay(.none)
        let mailer = SMTPMailer(host: "127.0.0.1", port: relay.port)
        let error = await #expect(throws: MailError.self) { try await mailer.send("1", to: "nobody@d.e") }
        let text = String(describing: error)
        #expect(text.contains("(550 5.1.1 no mailbox of that name)"), "\(text)")
    }

    @Test(
        "no mail goes to a relay that does not offer encryption, or whose certificate is not trusted or has another name"
    )
    func unverified() async throws {
        let (plain, encrypted) = (try await Relay(.none), try await Relay(.startTLS))
        for (relay, host, roots) in [
            (plain, "localhost", TestCertificate.path("ca.pem")),
            (encrypted, "localhost", TestCertificate.path("other.pem")),
            (encrypted, "127.0.0.2", TestCertificate.path("ca.pem")),
        ] {
            let mailer = SMTPMailer(
                host: host, port: relay.port, encryption: .startTLS, login: .init(user: "a", password: "b"),
                caFile: roots)
            await #expect(throws: MailError.self) { try await mailer.send("1", to: "ada@d.e") }
        }
        // The next mail is the only one that arrives.
        try await SMTPMailer(host: "127.0.0.1", port: plain.port, sender: "last@b.c").send("1", to: "ada@d.e")
        #expect(try await plain.nextMail().from == "last@b.c")
    }
}
