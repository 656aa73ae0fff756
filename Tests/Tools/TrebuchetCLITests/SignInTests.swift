import Foundation
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetCLI

/// `sign-in` as a user runs it, with a server and clients in separate processes.
@Suite(.timeLimit(.minutes(5))) struct SignInTests {
    /// Runs the tool with a folder for its state.
    private func trebuchet(_ folder: String, _ arguments: String...) async throws -> ChildProcess.Outcome {
        try await ChildProcess(
            "/usr/bin/env", ["XDG_STATE_HOME=\(folder)", ServeProcess.tool] + arguments, error: .captured
        ).finish()
    }

    @Test("a guest signs in, becomes a user with a code from a mail command, and signs out")
    func signIn() async throws {
        let folder = NSTemporaryDirectory() + "trebuchet-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let mailbox = try Mailbox(in: folder)
        let server = try await ServeProcess(arguments: [
            "--services", "auth", "--mail-command", mailbox.command,
        ])
        let url = server.url

        let guest = try await trebuchet(folder, "sign-in", "--url", url)
        #expect(guest.status == 0, "\(guest.error)")
        #expect(guest.output.hasPrefix("signed in as a guest ("))
        let id = guest.output.drop { $0 != "(" }

        let sent = try await trebuchet(folder, "sign-in", "--url", url, "--email", "ada@b.c")
        #expect(sent.status == 0, "\(sent.error)")
        #expect(sent.output.contains("10 minutes"))
        #expect(sent.output.hasSuffix("then: trebuchet sign-in --url \(url) --email ada@b.c --code CODE\n"), "\(sent)")
        let code = try mailbox.code(sentTo: "ada@b.c")
        let user = try await trebuchet(folder, "sign-in", "--url", url, "--email", "ada@b.c", "--code", code)
        #expect(user.status == 0, "\(user.error)")
        #expect(user.output == "signed in as ada@b.c \(id)", "the guest keeps the id")

        let again = try await trebuchet(folder, "sign-in", "--url", url)
        #expect(again.output.hasPrefix("already signed in as ada@b.c \(id.dropLast())"), "no guest replaces the user")

        // Other commands have that identity as well.
        let call = try await trebuchet(folder, "call", "--url", url, "counter", "increment()")
        #expect(call.status == 0 && call.output == "1\n", "\(call.error)")
        let files = try FileManager.default.contentsOfDirectory(atPath: folder + "/trebuchet/credentials")
        #expect(files.count == 1)
        let out = try await trebuchet(folder, "sign-out", "--url", url)
        #expect(out.output == "signed out\n", "\(out.error)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder + "/trebuchet/credentials").isEmpty)
        let nobody = try await trebuchet(folder, "sign-out", "--url", url)
        #expect(nobody.status == 1 && nobody.error.contains("not signed in"))
        #expect(await server.stop() == 0)
    }

    @Test("a session that is stored for the address of a server without sign-in is not used", arguments: [false, true])
    func otherServer(requiresKeys: Bool) async throws {
        let folder = NSTemporaryDirectory() + "trebuchet-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let first = try await ServeProcess()
        #expect(try await trebuchet(folder, "sign-in", "--url", first.url).status == 0)
        #expect(await first.stop() == 0)
        let access = AccessPolicy(
            authenticate: requiresKeys ? AccessPolicy.apiKeys(["k-ada": Principal(id: "ada")]) : nil)
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), access: access)
        await server.expose(Counter(actorSystem: server.actorSystem), as: "counter")
        let url = "ws://\(try await server.start())"
        let credentials = folder + "/trebuchet/credentials/"
        let old = try #require(try FileManager.default.contentsOfDirectory(atPath: credentials).first)
        let new = "ws-127.0.0.1-\(try #require(server.address).port).json"
        try FileManager.default.moveItem(atPath: credentials + old, toPath: credentials + new)

        let call = try await trebuchet(folder, "call", "--url", url, "counter", "increment()")
        #expect(call.error.contains("has no sign-in; the session stored for this URL is not used"), "\(call.error)")
        if requiresKeys {
            #expect(call.status == 1 && call.error.contains("responded with 401"), "\(call.error)")
        } else {
            #expect(call.status == 0 && call.output == "1\n", "\(call.error)")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: credentials) == [new], "the session stays")
        await server.shutdown(drain: .zero)
    }

    @Test("sessions are listed and ended, the address is changed, and the account is deleted")
    func account() async throws {
        let folder = NSTemporaryDirectory() + "trebuchet-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder + "/other", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let mailbox = try Mailbox(in: folder)
        let server = try await ServeProcess(arguments: ["--services", "auth", "--mail-command", mailbox.command])
        let url = server.url
        for state in [folder, folder + "/other"] {
            _ = try await trebuchet(state, "sign-in", "--url", url, "--email", "ada@b.c")
            let code = try mailbox.code(sentTo: "ada@b.c")
            let user = try await trebuchet(state, "sign-in", "--url", url, "--email", "ada@b.c", "--code", code)
            #expect(user.status == 0, "\(user.error)")
        }
        let listed = try await trebuchet(folder, "sessions", "--url", url)
        let lines = listed.output.split(separator: "\n")
        #expect(lines.count == 2 && lines.allSatisfy { $0.contains("\"label\":\"trebuchet at ") }, "\(listed)")
        #expect(lines.map { $0.contains("\"isCurrent\":true") } == [false, true])
        let id = try #require(lines[0].split(separator: "\"").drop { $0 != "id" }.dropFirst(2).first)
        let unknown = try await trebuchet(folder, "sessions", "--url", url, "end", "x")
        #expect(unknown.status == 1 && unknown.error.contains("does not have this session"))
        let ended = try await trebuchet(folder, "sessions", "--url", url, "end", "--", String(id))
        #expect(ended.output == "ended \(id)\n", "\(ended.error)")
        #expect(try await trebuchet(folder + "/other", "sessions", "--url", url).error.contains("not signed in"))
        #expect(try await trebuchet(folder, "sessions", "--url", url, "end-others").output == "ended 0 sessions\n")
        #expect(try await trebuchet(folder, "sessions", "--url", url, "stop").status == 2)

        let sent = try await trebuchet(folder, "account", "change-email", "--url", url, "new@b.c")
        #expect(
            sent.output.contains("then: trebuchet account change-email --url \(url) new@b.c --code CODE"), "\(sent)")
        let code = try mailbox.code(sentTo: "new@b.c")
        let changed = try await trebuchet(folder, "account", "change-email", "--url", url, "new@b.c", "--code", code)
        #expect(changed.output.hasPrefix("signed in as new@b.c ("), "\(changed.error)")

        #expect(try await trebuchet(folder, "account", "delete", "--url", url).output.contains("nothing was deleted"))
        let deleted = try await trebuchet(folder, "account", "delete", "--url", url, "--yes")
        #expect(deleted.output.hasPrefix("deleted new@b.c ("), "\(deleted.error)")
        #expect(try await trebuchet(folder, "sessions", "--url", url).error.contains("not signed in"))
        #expect(await server.stop() == 0)
    }

    @Test("unsuitable service options are usage errors")
    func wrongUses() async throws {
        for (arguments, reason) in [
            (["--services", "auht"], "did you mean 'auth'?"),
            (["--services", "rooms", "--smtp", "127.0.0.1:25"], "--services with auth"),
            (["--services", "auth", "--smtp", "here:there"], "127.0.0.1:25"),
            (["--smtp", ":25"], "127.0.0.1:25"), (["--smtp", "smtp://h"], "127.0.0.1:25"),
            (["--smtp-user", "a"], "--smtp-user requires --smtp"),
            (["--smtp", "h", "--smtp-user", "a"], "requires --smtp-password-file"),
            (["--smtp", "h", "--smtp-password-file", "/etc/hostname"], "requires --smtp-user"),
            (["--smtp", "h", "--smtp-encryption", "ssl"], "is not one of none, starttls, tls"),
            (["--smtp", "h", "--smtp-ca-file", "/etc/hostname"], "requires --smtp-encryption"),
            (["--smtp", "h", "--smtp-encryption", "tls", "--smtp-ca-file", "/no/such"], "/no/such: No such file"),
            (
                [
                    "--smtp", "h", "--smtp-user", "a", "--smtp-encryption", "none", "--smtp-password-file",
                    "/etc/hostname",
                ], "unencrypted"
            ),
            (["--services", "auth", "--mail-from", "a@b.c\nX: y"], "not a mail address"),
            (["--services", "auth", "--smtp", "h:25", "--mail-command", "m"], "cannot be combined"),
            (["--mail-command", "/no/such/mailer -t"], "--mail-command /no/such/mailer: program not found\n"),
            (["--mail-command", "no-such-mailer"], "no-such-mailer: program not found in PATH"),
            (["--mail-command", "/tmp"], "/tmp: program not found"),
        ] {
            let outcome = try await ChildProcess(
                ServeProcess.tool, ["serve", "--port", "0"] + arguments, error: .captured
            ).finish()
            #expect(outcome.status == 2)
            #expect(outcome.error.contains(reason), "\(outcome.error)")
        }
    }

    @Test("each server has a separate file, whose name cannot be chosen by an address")
    func files() throws {
        let names = try [
            "ws://a:1", "wss://a:1", "ws://a:2", "ws://A:1", "ws://[::1]:1", "ws://..%2f:1", "HTTP://a:1/?x=1",
            "ws://a:1/../B",
        ].map { CredentialFile.name(of: try RemoteURL($0)) }
        #expect(
            names == [
                "ws-a-1", "wss-a-1", "ws-a-2", "ws-a-1", "ws-%3a%3a1-1", "ws-..%252f-1", "ws-a-1",
                "ws-a-1-%2f..%2f%42",
            ])
    }
}
