import Bytes
import Foundation
import Networking
import Platform
import TestSupport
import Testing
import Transports
import TrebuchetTesting

@testable import TrebuchetServices

@Suite(.timeLimit(.minutes(5))) struct MailTests {
    @Test(
        "addresses are accepted, in lower case",
        arguments: [
            ("ada@example.org", "ada@example.org"), ("Ada.Lovelace+x@Example.ORG", "ada.lovelace+x@example.org"),
            ("o-hara_1@a-b.c", "o-hara_1@a-b.c"), ("_a@b.c", "_a@b.c"), ("root@localhost", "root@localhost"),
            (String(repeating: "a", count: 64) + "@b.c", String(repeating: "a", count: 64) + "@b.c"),
            (" ada@example.org ", "ada@example.org"), ("\u{A0}ada@b.c\t", "ada@b.c"),
            ("\u{FEFF}\u{200B}ada@b.c\u{3000}\u{2060}", "ada@b.c"),
        ])
    func addresses(_ text: String, normalized: String) throws {
        #expect(try MailAddress(text).text == normalized)
    }

    /// Line ends, and ends of addresses and arguments, each with injected text.
    static let injections = [
        "a@b.c\r\nBcc: eve@d.e", "a@b.c\nRCPT TO:<eve@d.e>", "a\r\n.\r\n@b.c", "a@b.c\0", "a@b.c\r", "a b@c.d",
        "a@b c.d",
        "<a@b.c>", "a@b.c>", "a@b.c, eve@d.e", "\"a\"@b.c", "a@[127.0.0.1]", "a(x)@b.c", "-oQ/tmp@b.c", "--@b.c",
        "a@-b.c", "a@b-.c", "a@b..c", "a..b@c.d", ".a@b.c", "a.@b.c", "@b.c", "a@", "a", "", "a@b.c;rm", "$(a)@b.c",
        "`a`;@b.c", "ä@b.c", "|id@x", "/etc/x@y.z", "a%b@c", "a!b@c", "${run{x}}@h", "a'b@c.d", "+a@b.c", "a#b@c.d",
        "{a}@b.c", "a*@b.c", "~a@b.c", "a&b@c.d", "a=b@c.d", "a?@b.c", "^a@b.c", "a@ä.c",
        String(repeating: "a", count: 65) + "@b.c",
        "a@" + String(repeating: "b", count: 64) + ".c", "a@" + String(repeating: "b.", count: 130) + "c",
    ]

    @Test("an invalid address is refused", arguments: injections)
    func refused(_ text: String) {
        #expect(throws: AuthError.invalidAddress) { try MailAddress(text) }
    }

    @Test("a mail has its headers and the code, and every line ends in CR LF")
    func message() throws {
        let mail = try MailMessage(code: "012345", from: "us@b.c", to: "ada@d.e", seconds: 1_795_277_047, id: "x")
        let lines = mail.text.components(separatedBy: "\r\n")
        #expect(lines.contains("Date: Sat, 21 Nov 2026 16:04:07 +0000"))
        #expect(lines.contains("From: <us@b.c>") && lines.contains("To: <ada@d.e>"))
        #expect(lines.contains("Message-ID: <x@b.c>"))
        #expect(lines.contains("012345 is your code to sign in, or to confirm this address."))
        #expect(lines.last == "" && !lines.contains { $0.contains("\r") || $0.contains("\n") })
        #expect(throws: AuthError.invalidAddress) { try MailMessage(code: "1", from: "us@b.c\r\nX: y", to: "a@b.c") }
    }

    // MARK: The mailers

    @Test("a mail reaches a relay over a socket, whose replies arrive in pieces")
    func smtp() async throws {
        let relay = try FakeRelay(replies: [
            "220 hi\r\n", "250-a\r\n250 b\r\n", "250 c\r\n", "250 d\r\n", "354 e\r\n", "250 f\r\n",
        ])
        let mailer = SMTPMailer(host: "127.0.0.1", port: relay.port, sender: "us@b.c")
        try await mailer.send("012345", to: "ada@d.e")
        await relay.journal.wait(for: "QUIT")
        let entries = relay.journal.entries
        #expect(Array(entries.prefix(4)) == ["EHLO localhost", "MAIL FROM:<us@b.c>", "RCPT TO:<ada@d.e>", "DATA"])
        #expect(
            entries.contains("012345 is your code to sign in, or to confirm this address.") && entries.contains("."))
        await relay.close()
    }

    @Test(
        "a relay that refuses at any step, replies otherwise or stays silent is an error",
        arguments: [
            [], ["554 no"], ["hello"], ["22"], ["220 x", "550 what", "550 what"], ["220 x", "250 x", "550 not you"],
            ["220 x", "250 x", "250 x", "550 nobody"], ["220 x", "250 x", "250 x", "250 x", "550 not now"],
            ["220 x", "250 x", "250 x", "250 x", "354 x", "452 full"],
            [String(repeating: "220-x\r\n", count: 20_000) + "220 x"],
        ])
    func smtpFails(_ replies: [String]) async throws {
        let relay = try FakeRelay(replies: replies.map { $0 + "\r\n" })
        // Only a relay that is silent ends by the timeout.
        let timeout: Duration =
            replies.contains { $0.hasPrefix("5") || $0.hasPrefix("4") } ? .seconds(600) : .milliseconds(200)
        let mailer = SMTPMailer(host: "127.0.0.1", port: relay.port, timeout: timeout)
        let error = await #expect(throws: MailError.self) { try await mailer.send("012345", to: "ada@d.e") }
        #expect(error?.description.hasPrefix("the mail relay 127.0.0.1:\(relay.port): ") == true)
        await relay.close()
        await #expect(throws: MailError.self) {
            try await SMTPMailer(host: "127.0.0.1", port: 1).send("012345", to: "ada@d.e")
        }
    }

    @Test("a command receives the mail on its input and the address in its environment, even with special characters")
    func command() async throws {
        let folder = try TemporaryFolder()
        let file = folder.path + "/mail"
        let script = "cat > \"$1\"; echo \"$TREBUCHET_MAIL_TO $TREBUCHET_MAIL_CODE\" >> \"$1\""
        let mailer = CommandMailer(["/bin/sh", "-c", script, "sh", file])
        try await mailer.send("012345", to: "a_b-c+d.e@f.g")
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(text.contains("To: <a_b-c+d.e@f.g>\r\n"))
        #expect(text.hasSuffix("a_b-c+d.e@f.g 012345\n"))
    }

    @Test("a command that fails, takes too long or does not exist is an error")
    func commandFails() async throws {
        for (command, reason) in [
            (["/bin/sh", "-c", "exit 3"], "exited with status 3"),
            (["/bin/sh", "-c", "exec sleep 60"], "did not end within"),
            (["/nonexistent/mailer"], "failed to start"), (["/bin/true"], ""),
            // Threads of the pool block signals; their child processes do not.
            (["/bin/sh", "-c", "kill -TERM $$; exec sleep 60"], "signal 15"),
        ] {
            // Only the command that is to take too long has a short timeout.
            let mailer = CommandMailer(
                command, timeout: reason.hasPrefix("did not end") ? .milliseconds(300) : .seconds(600))
            do {
                try await mailer.send("012345", to: "ada@d.e")
                #expect(reason == "")
            } catch {
                #expect("\(error)".contains(reason) && reason != "", "\(error)")
            }
        }
    }

    @Test("a command that takes too long is killed with its children")
    func processGroup() async throws {
        let made: Platform.Pipe? = Platform.Pipe()
        let pipe = try #require(made)
        let (readEnd, writeEnd) = (pipe.readEnd, pipe.writeEnd)
        defer { close(readEnd) }
        // Each child has the pipe until its end.
        let script = "exec 5>/proc/\(getpid())/fd/\(writeEnd); sleep 600 & (sleep 600; echo) & wait"
        let mailer = CommandMailer(["/bin/sh", "-c", script], timeout: .milliseconds(300))
        await #expect(throws: MailError.self) { try await mailer.send("012345", to: "ada@d.e") }
        close(writeEnd)
        let count = await onThread {
            var byte: UInt8 = 0
            return read(readEnd, &byte, 1)
        }
        #expect(count == 0, "no process has the pipe")
    }

    @Test("output of a command is logged line by line, escaped and up to 4 KiB, and too much of it is an error")
    func output() async throws {
        let journal = Journal()
        func send(_ script: String) async throws {
            let mailer = CommandMailer(["/bin/sh", "-c", script], timeout: .seconds(600)) { journal.record($0) }
            try await mailer.send("012345", to: "ada@d.e")
        }
        try await send(#"printf 'one\033[2J\r\n'; printf 'two\377\n' >&2"#)
        #expect(
            journal.entries == [
                #"mail command '/bin/sh': one\u{1B}[2J"#, "mail command '/bin/sh': two\u{FFFD}",
            ])
        try await send("head -c 9000 /dev/zero | tr '\\0' x")
        #expect(journal.entries.count == 4)
        #expect(journal.entries[2] == "mail command '/bin/sh': " + String(repeating: "x", count: 4_096))
        #expect(journal.entries[3] == "mail command '/bin/sh': … (4904 more bytes)")
        let error = await #expect(throws: MailError.self) { try await send("yes") }
        #expect(error?.description.contains("wrote more than 64 KiB of output") == true)
        // A child that continues has the output, which nothing reads any more; the mail is sent nevertheless.
        try await send("sleep 600 & echo $! >&2")
        let last = try #require(journal.entries.last?.split(separator: " ").last.flatMap { Int32($0) })
        #expect(kill(last, SIGKILL) == 0)
    }
}

/// A relay that sends its replies in turn, to the greeting and to each line; the lines of the mail have one reply, at the end.
private final class FakeRelay: Sendable {
    let journal = Journal()
    private let listener: Listener

    init(replies: [String]) throws {
        let journal = journal
        listener = try Listener.bind(
            host: "127.0.0.1", port: 0, reactors: ReactorGroup.servers(count: 1).reactors
        ) { channel in
            let conversation = Conversation(replies, journal)
            try? channel.start(conversation)
            conversation.reply(channel)
        }
    }

    var port: Int { listener.address.port }
    func close() async { await listener.close() }

    private final class Conversation: ByteChannelDelegate {
        private var replies: ArraySlice<String>
        private let journal: Journal
        private var line: [UInt8] = []
        private var isMail = false

        init(_ replies: [String], _ journal: Journal) {
            self.replies = replies[...]
            self.journal = journal
        }

        /// In two pieces.
        func reply(_ channel: ByteChannel) {
            guard let reply = replies.popFirst() else { return }
            channel.write { $0.append(utf8: String(reply.prefix(2))) }
            channel.reactor.execute { channel.write { $0.append(utf8: String(reply.dropFirst(2))) } }
        }

        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
            for byte in bytes where byte != 0x0D {
                guard byte == 0x0A else {
                    line.append(byte)
                    continue
                }
                let text = String(decoding: line, as: UTF8.self)
                line = []
                journal.record(text)
                if isMail, text != "." { continue }
                isMail = text == "DATA" && replies.first?.hasPrefix("354") == true
                if text == "QUIT" { channel.close() } else { reply(channel) }
            }
        }

        func channelDidBecomeWritable(_ channel: ByteChannel) {}
        func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
    }
}
