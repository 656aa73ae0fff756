import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Returns the identity of its caller.
@Trebuchet
distributed actor TokenTestServer {
    @StreamedState var name = ""

    distributed func who() -> String {
        name = Caller.current?.principal?.id ?? "nobody"
        return name
    }
}

@Suite(.timeLimit(.minutes(5))) struct TokenTests {
    private func run(_ environment: [String] = [], _ arguments: String...) async throws -> ChildProcess.Outcome {
        try await ChildProcess(
            "/usr/bin/env", ["-u", "TREBUCHET_TOKEN"] + environment + [ServeProcess.tool] + arguments, error: .captured
        ).finish()
    }

    @Test("call and observe connect with the credential of --token, else with that of TREBUCHET_TOKEN")
    func credential() async throws {
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0),
            access: AccessPolicy(
                authenticate: AccessPolicy.apiKeys(["k-ada": Principal(id: "ada"), "k-bob": Principal(id: "bob")])))
        await server.expose(TokenTestServer(actorSystem: server.actorSystem), as: "door")
        let url = "ws://127.0.0.1:\(try await server.start().port)"

        let byOption = try await run([], "call", "--url", url, "--token", "k-ada", "door", "who()")
        #expect(byOption.output == "\"ada\"\n", "\(byOption.error)")
        let byVariable = try await run(["TREBUCHET_TOKEN=k-bob"], "call", "--url", url, "door", "who()")
        #expect(byVariable.output == "\"bob\"\n", "\(byVariable.error)")
        let both = try await run(["TREBUCHET_TOKEN=k-bob"], "call", "--url", url, "--token", "k-ada", "door", "who()")
        #expect(both.output == "\"ada\"\n", "\(both.error)")
        let observed = try await run(
            ["TREBUCHET_TOKEN=k-bob"], "observe", "--url", url, "--count", "1", "door", "observeName")
        #expect(observed.output == "\"ada\"\n", "\(observed.error)")

        let wrong = try await run(["TREBUCHET_TOKEN=k-eve"], "call", "--url", url, "door", "who()")
        #expect(wrong.status == 1)
        #expect(wrong.error.contains("unknown API key"))
        let none = try await run(["TREBUCHET_TOKEN="], "call", "--url", url, "door", "who()")
        #expect(none.error.contains("an API key is required"), "\(none.error)")
        await server.shutdown(drain: .zero)
    }

    @Test("serve --token-issuer admits only clients with a token of the issuer", arguments: [false, true])
    func issuer(keySet: Bool) async throws {
        let issuer = try TestTokenIssuer()
        let server = try await ServeProcess(
            arguments: ["--token-issuer", issuer.url, "--token-audience", "todos"]
                + (keySet ? ["--token-keys", issuer.keySetURL] : []))
        func call(_ token: String) async throws -> ChildProcess.Outcome {
            try await run(["TREBUCHET_TOKEN=\(token)"], "call", "--url", server.url, "counter", "increment()")
        }
        let admitted = try await call(issuer.token(for: "ada", audience: "todos"))
        #expect(admitted.status == 0, "\(admitted)")
        issuer.rotate()
        let other = try await call(issuer.token(for: "ada", audience: "others"))
        #expect(other.status == 1 && other.error.contains("its audience is wrong"), "\(other)")
        let none = try await call("")
        #expect(none.status == 1 && none.error.contains("a bearer token is required"), "\(none)")
        await server.stop()
        await issuer.close()
    }

    @Test(
        "serve refuses incomplete and invalid options for tokens",
        arguments: [
            (["--token-audience", "a"], "--token-audience requires --token-issuer"),
            (["--token-keys", "https://a.b/k"], "--token-keys requires --token-issuer"),
            (["--token-issuer", "https://a.b"], "--token-issuer requires --token-audience"),
            (["--token-issuer", "http://a.b", "--token-audience", "a"], "--token-issuer: 'http://a.b"),
            (
                ["--token-issuer", "a", "--token-audience", "a", "--token-keys", "http://a.b/k"],
                "--token-keys: 'http://a.b/k'"
            ),
            (
                ["--token-issuer", "https://a.b", "--token-audience", "a", "--services", "auth,rooms"],
                "--token-issuer cannot be combined with accounts"
            ),
        ])
    func issuerOptions(arguments: [String], reason: String) async throws {
        let outcome = try await ChildProcess(
            "/usr/bin/timeout", ["20", ServeProcess.tool, "serve", "--port", "0"] + arguments, error: .captured
        ).finish()
        #expect(outcome.status == 2 && outcome.error.contains(reason), "\(outcome)")
    }

    @Test(
        "help and the name of a command print the same text as the command with --help",
        arguments: [["serve"], ["bench"], ["bench", "rpc"], ["call"]])
    func help(names: [String]) async throws {
        func output(_ arguments: [String]) async throws -> ChildProcess.Outcome {
            try await ChildProcess(ServeProcess.tool, arguments, error: .captured).finish()
        }
        let help = try await output(["help"] + names)
        #expect(help == (try await output(names + ["--help"])))
        #expect(help.status == 0 && help.output.contains("usage: trebuchet \(names.joined(separator: " "))"))
        #expect(try await output(["help"]) == (try await output(["--help"])))
    }

    @Test("help for an unknown command is exit code 2 with the nearest match")
    func helpOfNothing() async throws {
        let help = try await run([], "help", "serv")
        #expect(help.status == 2)
        #expect(help.error.contains("did you mean 'serve'?"))
    }
}
