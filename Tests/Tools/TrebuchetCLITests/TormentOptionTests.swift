import TestSupport
import Testing
import TrebuchetTesting

/// The parts of `serve` that `scripts/stress torment` needs.
@Suite(.timeLimit(.minutes(5))) struct TormentOptionTests {
    @Test("serve --torment refuses to listen on public addresses")
    func otherHosts() async throws {
        for host in ["0.0.0.0", "::", "192.0.2.1"] {
            let outcome = try await ChildProcess(
                ServeProcess.tool, ["serve", "--torment", "--host", host, "--port", "0"], error: .captured
            ).finish()
            #expect(outcome.status == 2)
            #expect(outcome.error.contains("127.0.0.1, ::1 or localhost"))
        }
    }

    @Test("serve --torment shows its counters, which are zero without requests")
    func counters() async throws {
        let server = try await ServeProcess(arguments: ["--torment"])
        let outcome = try await ChildProcess(
            ServeProcess.tool, ["call", "--url", server.url, "debug", "report()"], error: .captured
        ).finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        for name in [
            "callsUnderWay", "callsWaiting", "streams", "broadcasters", "recordedResponses", "activations", "tasks",
        ] {
            #expect(outcome.output.contains("\"\(name)\":0"), "\(outcome.output)")
        }
        await server.stop()
    }

    @Test("other servers do not host the counters")
    func withoutOption() async throws {
        let server = try await ServeProcess()
        let outcome = try await ChildProcess(
            ServeProcess.tool, ["call", "--url", server.url, "debug", "report()"], error: .captured
        ).finish()
        #expect(outcome.status == 1)
        await server.stop()
    }
}
