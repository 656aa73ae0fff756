import Platform
import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetInspector
import TrebuchetTesting

/// Changes through the inspector, their permission and their timeouts.
@Suite(.timeLimit(.minutes(5))) struct InspectorWriteTests {
    private func post(_ path: String, _ rig: InspectorRig, _ fields: String...) async throws -> String {
        let peer = try RawPeer(rig.address)
        let token = "Authorization: Bearer \(rig.inspector.token)"
        peer.writeText(
            "POST \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(([token] + fields).joined(separator: "\r\n"))\r\n\r\n"
        )
        return await peer.readAll()
    }

    @Test(
        "a method is called with the given principal, its outcome is shown, and the log has the principal, without arguments"
    )
    func call() async throws {
        let lines = RecordingEventHandler(.server)
        try await InspectorRig.with(writes: true) { server in
            server.addEventHandler(lines)
        } _: { client, _, rig async throws in
            #expect(try await rig.json("/inspect/overview")["writes"].flag == true)
            _ = try await rig.json("/inspect/actors/shelf")
            let path = "/inspect/actors/shelf/call?method=put(_:)&principal=ada&arguments=%5B%22a%20secret%22%5D"
            let answer = try await post(path, rig)
            #expect(
                InspectorRig.status(answer) == "200" && InspectorRig.body(answer).contains(#""result":1"#), "\(answer)")
            let shown = try await rig.json("/inspect/actors/shelf")
            #expect(shown["states"].list.first?["value"].texts == ["a secret"])
            let made = shown["recorded"]["versions"].list.first?["calls"].list.first
            #expect(made?["principal"].text == "ada" && made?["method"].text == "put(_:)")
            let failed = try await post("/inspect/actors/shelf/call?method=refuse(_:)&arguments=%5B%22a%22%5D", rig)
            #expect(InspectorRig.status(failed) == "200" && failed.contains(#""code":"application""#), "\(failed)")
            let said = lines.events.compactMap { if case .logMessage(_, let text) = $0 { text } else { nil } }
            #expect(said.contains { $0.hasSuffix("calls put(_:) of shelf as ada") }, "\(said)")
            #expect(!said.joined().contains("secret"))
            for path in ["call", "call?method=put(_:)&arguments=%7B%7D", "call?method=put(_:)&arguments=%5B"] {
                #expect(InspectorRig.status(try await post("/inspect/actors/shelf/\(path)", rig)) == "400")
            }
            let foreign = try await post(path, rig, "Origin: https://evil.example")
            #expect(InspectorRig.status(foreign) == "403")
            #expect(try await client.resolve(Shelf.self, id: "shelf").put("b") == 2)
        }
    }

    @Test("a connection is closed, and its client reconnects")
    func cut() async throws {
        try await InspectorRig.with(writes: true) { client, _, rig async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            #expect(try await shelf.put("a") == 1)
            let number = try #require(
                try await rig.json("/inspect/connections")["connections"].list.first?["connection"].count)
            #expect(InspectorRig.status(try await post("/inspect/connections/\(number)/close", rig)) == "200")
            let isGone = try await eventually {
                let left = try await rig.json("/inspect/connections")["connections"].list
                return !left.contains { $0["connection"].count == number }
            }
            #expect(isGone)
            #expect(InspectorRig.status(try await post("/inspect/connections/\(number)/close", rig)) == "404")
            #expect(InspectorRig.status(try await post("/inspect/connections/x/close", rig)) == "400")
        }
    }

    @Test("while a method blocks its actor, this is reported in time, and the known data is shown")
    func busy() async throws {
        // On separate reactors, which no other test uses.
        try await InspectorRig.with(clock: TestTime()) { server in
            await server.expose(BlockingCounter(actorSystem: server.actorSystem), as: "stuck")
        } _: { client, _, rig async throws in
            let stuck = try client.resolve(BlockingCounter.self, id: "stuck")
            let pendingCall = Task { try await stuck.hold() }
            await onThread { BlockingCounter.gate.began.wait() }
            let shown = try await rig.answer("/inspect/actors/stuck")
            #expect(shown.contains("may be blocked"), "\(shown)")
            #expect(InspectorRig.status(try await rig.answer("/inspect/calls")) == "200")
            #expect(try await rig.json("/inspect/actors")["all"].count == 2)
            BlockingCounter.gate.end.signal()
            try await pendingCall.value
            #expect(try await rig.json("/inspect/actors/stuck")["states"].list.first?["value"].count == 1)
        }
    }
}

/// Blocks its reactor and the other actors on it.
@Trebuchet
distributed actor BlockingCounter {
    static let gate = (began: ThreadSemaphore(), end: ThreadSemaphore())

    @StreamedState var times: Int = 0

    distributed func hold() {
        Self.gate.began.signal()
        Self.gate.end.wait()
        times += 1
    }
}
