import Bytes
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetClient
@testable import TrebuchetInspector

/// Events and recorded data of calls that were refused, or that ended differently from their methods.
@Suite(.timeLimit(.minutes(5))) struct RejectedCallTests {
    /// One character, but 80 KB of storage.
    private static let long = "x" + String(repeating: "\u{301}", count: 40_000)

    @Test("the recorded and echoed data of a refused call is limited in bytes, whatever its name")
    func longNames() async throws {
        let listener = RecordingEventHandler(.calls)
        try await InspectorRig.with { server in
            server.addEventHandler(listener)
        } _: { client, _, rig async throws in
            _ = try await rig.json("/inspect/calls")
            for actor in ["shelf", Self.long] {
                for target in ["put(_:)", Self.long] where actor != "shelf" || target != "put(_:)" {
                    let error = await #expect(throws: TrebuchetError.self) {
                        _ = try await client.call(actor: actor, target: target, arguments: [])
                    }
                    #expect(error?.message.utf8.count ?? 0 < 2_000)
                }
            }
            for path in ["/inspect/calls", "/inspect/log"] {
                let answer = try await rig.answer(path)
                #expect(answer.utf8.count < 16_384, "\(path): \(answer.utf8.count) bytes for 3 calls")
            }
            #expect("\(listener.events)".utf8.count < 16_384)
        }
    }

    @Test("other recorded data of the inspector is limited in bytes as well")
    func longLines() {
        var ring = RecentCallBuffer()
        let lines = [
            ServerEvent.logMessage(.notice, Self.long),
            .storeWriteCompleted(actors: 1, duration: .zero, error: Self.long),
            .connectionRejected(address: nil, status: 400, reason: Self.long),
        ]
        for line in lines { ring.recordEvent(line) }
        #expect("\(ring)".utf8.count < 40_000)
    }

    @Test("a text is cut at the start of a scalar, and a short one is not changed")
    func cutting() {
        #expect(
            "héllo".prefix(bytes: 2) == "h" && "héllo".prefix(bytes: 3) == "hé" && "héllo".prefix(bytes: 6) == "héllo")
        #expect("".prefix(bytes: 0) == "" && "é".prefix(bytes: 1) == "" && "abc"[...].prefix(bytes: 2) == "ab")
        #expect(Self.long.prefix(bytes: 128).utf8.count == 127)
    }

    @Test("a call of an unknown method and one with the wrong number of arguments are reported")
    func reportedReason() async throws {
        let listener = RecordingEventHandler(.calls)
        try await InspectorRig.with { server in
            server.addEventHandler(listener)
        } _: { client, _, rig async throws in
            _ = try await rig.json("/inspect/calls")
            for target in ["put(_:)", "nothing()"] {
                await #expect(throws: TrebuchetError.self) {
                    _ = try await client.call(actor: "shelf", target: target, arguments: [])
                }
            }
            let calls = try await rig.json("/inspect/calls")["calls"].list
            #expect(calls.map { $0["error"].text } == ["methodNotFound", "invalidArguments"])
            #expect(calls.map { $0["method"].text } == ["nothing()", "put(_:)"])
            #expect(listener.events.count == 2, "\(listener.events)")
        }
    }

    @Test(
        "a call whose client receives an error is not successful for the inspector and for traces",
        arguments: [false, true])
    func tooLarge(isLater: Bool) async throws {
        let listener = RecordingEventHandler([.calls, .spans])
        var limits = ServerLimits()
        limits.messages.outboundBytes = 100_000
        try await withTestServer(limits: limits) { server in
            server.addEventHandler(listener)
            server.setTraceSamplingRatio(1)
            await server.expose(Worker(actorSystem: server.actorSystem), as: "worker")
        } body: { client, server async throws in
            let rig = InspectorRig(inspector: try server.openInspector())
            _ = try await rig.json("/inspect/calls")
            let worker = try client.resolve(Worker.self, id: "worker")
            let error = await #expect(throws: TrebuchetError.self) {
                _ = isLater ? try await worker.largeLater() : try await worker.large()
            }
            #expect(error?.code == .internal)
            let call = try #require(try await rig.json("/inspect/calls")["calls"].list.first)
            #expect(call["error"].text == "internal")
            let spans = listener.events.compactMap { if case .spanEnded(let span) = $0 { span } else { nil } }
            #expect(spans.map(\.error) == ["internal"])
        }
    }

    @Test(
        "arguments of @Redacted methods appear neither in the log nor in the inspector, even when the method throws them"
    )
    func redactedError() async throws {
        let lines = RecordingEventHandler(.server)
        try await InspectorRig.with { server in
            server.addEventHandler(lines)
            await server.expose(Vault(actorSystem: server.actorSystem), as: "vault", inspectable: false)
            await server.expose(Safe(actorSystem: server.actorSystem), as: "safe")
        } _: { client, _, rig async throws in
            _ = try await rig.json("/inspect/log")
            let vault = try client.resolve(Vault.self, id: "vault")
            await #expect(throws: TrebuchetError.self) { try await vault.open(with: "code-swordfish") }
            await #expect(throws: TrebuchetError.self) { try await vault.openLater(with: "code-swordfish") }
            await #expect(throws: TrebuchetError.self) {
                try await client.resolve(Safe.self, id: "safe").fail(with: "code-swordfish")
            }
            let log = try await rig.answer("/inspect/log")
            #expect(!log.contains("swordfish"), "\(InspectorRig.body(log))")
            #expect(!"\(lines.events)".contains("swordfish"), "\(lines.events)")
            #expect(lines.events.count == 3, "\(lines.events)")
            for event in lines.events { #expect("\(event)".contains("WrongCode")) }
        }
    }
}

@Trebuchet
distributed actor Vault {
    struct WrongCode: Error { let given: String }

    @Redacted distributed func open(with code: String) throws { throw WrongCode(given: code) }
    distributed func openLater(with code: String) async throws {
        await Task.yield()
        throw WrongCode(given: code)
    }
}
