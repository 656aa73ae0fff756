import Foundation
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetInspector

/// Sells items from a shelf, or throws the reason for a refusal.
@Trebuchet
distributed actor PricedItemShop {
    enum Problem: Error {
        case soldOut
        case notYours(String)
    }

    distributed func sell(_ book: String, at shelf: String) async throws -> Int {
        try await actorSystem.resolve(Shelf.self, id: shelf).put(book)
    }

    distributed func refuse(_ secret: String) throws {
        throw secret.isEmpty ? Problem.soldOut : Problem.notYours(secret)
    }

    @Redacted distributed func open(with code: String) {}
}

/// A state that is sent as deltas.
@Trebuchet
distributed actor PatchedStateActor {
    @StreamedState var lines: [String] = ["", "", "", ""]

    distributed func write(_ line: String, at place: Int) { lines[place] = line }
}

/// The reasons that the inspector shows for unexpected outcomes.
@Suite(.timeLimit(.minutes(5))) struct InspectorReasonTests {
    private static func upgrade(_ protocols: String = "trebuchet.v3") -> String {
        "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            + "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: \(protocols)\r\n\r\n"
    }

    /// The log line about the end of a connection.
    private static func ending(of connection: Int, _ rig: InspectorRig) async throws -> InspectedValue {
        var found: InspectedValue?
        #expect(
            try await eventually {
                let lines = try await rig.json("/inspect/log?connection=\(connection)")["lines"].list
                found = lines.first { $0["message"].text == "connection closed" }
                return found != nil
            })
        return try #require(found)["fields"]
    }

    private static func newest(_ rig: InspectorRig) async throws -> InspectedValue {
        try await rig.json("/inspect/actors/slate")["recorded"]["versions"].list.first ?? InspectedValue(value: nil)
    }

    @Test("a slow connection is listed at each version that it lacks, and as having skipped these when it closes")
    func behind() async throws {
        try await InspectorRig.with { server in
            await server.expose(PatchedStateActor(actorSystem: server.actorSystem), as: "slate")
        } _: { client, server, rig async throws in
            _ = try await rig.json("/inspect/connections")
            var peer: RawPeer? = try RawPeer(try #require(server.address), receiveBuffer: 4_096)
            peer?.writeText(Self.upgrade())
            _ = await peer?.readHead()
            let observes = #"{"callID":"1","actorID":"slate","targetIdentifier":"observeLines"}"#
            peer?.writeText(message: #"{"type":"invocation","payload":\#(observes)}"#)
            var connection: InspectedValue?
            #expect(
                try await eventually {
                    let all = try await rig.json("/inspect/connections")["connections"].list
                    connection = all.first { $0["streams"].count == 1 }
                    return connection != nil
                })
            let number = try #require(connection?["connection"].count)
            try await rig.follow("slate")
            let slate = try client.resolve(PatchedStateActor.self, id: "slate")
            func connected() async throws -> InspectedValue? {
                try await rig.json("/inspect/connections")["connections"].list.first {
                    $0["connection"].count == number
                }
            }
            func write(_ time: Int) async throws {
                try await slate.write(String(repeating: "\(time % 10)", count: 20_000), at: time % 4)
            }
            // Writes until the sockets between the two are full and stay full: the kernel may take output some time after a write.
            // What waits then may be as little as one state, as the newest update replaces those before.
            var (times, settled, lastCount) = (0, 0, 0)
            while settled < 5, times < 2_000 {
                let look = try await connected()
                let now = look?["bufferedBytes"].count ?? 0
                let isFull = look?["writable"].flag == false && now > 0
                if !isFull {
                    for time in times..<times + 10 { try await write(time) }
                    times += 10
                }
                (settled, lastCount) = (isFull && now == lastCount ? settled + 1 : 0, now)
            }
            #expect(settled == 5)
            try await write(times)
            let version = try await Self.newest(rig)
            #expect(version["behind"].count == 1 && version["behindBy"].list.map(\.count) == [number])
            #expect(version["skipped"].count == 0)
            let stuck = try await connected()
            // The kernel may have accepted more since, but not all.
            #expect(stuck?["bufferedBytes"].count ?? 0 > 0)
            // The peer closes without having read any of that.
            peer = nil
            let fields = try await Self.ending(of: number, rig)
            #expect(fields["cause"].text == "lost" && fields["code"].count == 1006)
            let last = try await Self.newest(rig)
            #expect(last["behind"].count == 0 && last["skippedBy"].list.map(\.count) == [number])
        }
    }

    @Test("the reason for closing a connection is logged and counted")
    func endings() async throws {
        try await InspectorRig.with(writes: true) { client, server, rig async throws in
            _ = try await rig.json("/inspect/connections")
            let peer = try RawPeer(try #require(server.address))
            peer.writeText(Self.upgrade())
            _ = await peer.readHead()
            // An extended length for a payload that needs none.
            peer.writeText([0x81, 0xFE, 0, 1, 0, 0, 0, 0, 0x20])
            _ = await peer.readAll()
            let other = TrebuchetClient(
                transport: .webSocket(host: "127.0.0.1", port: try #require(server.address).port))
            try await other.connect()
            var numbers: [Int] = []
            #expect(
                try await eventually {
                    let lines = try await rig.json("/inspect/log")["lines"].list
                    numbers = lines.filter { $0["message"].text == "connection opened" }.compactMap {
                        $0["fields"]["connection"].count
                    }
                    return numbers.count == 2
                })
            let broken = try await Self.ending(of: numbers[1], rig)
            #expect(broken["cause"].text == "violation" && broken["code"].count == 1002)
            #expect(broken["reason"].text == "payload length is not in its shortest form")
            await other.close()
            let closed = try await Self.ending(of: numbers[0], rig)
            #expect(closed["cause"].text == "client")
            var text = ""
            // Metrics throw while other tests of this process block a reactor.
            _ = await eventually {
                text = (try? await server.prometheusMetrics()) ?? ""
                return !text.isEmpty
            }
            for line in ["violation\"} 1", "client\"} 1", "lost\"} 0", "silent\"} 0", "limit\"} 0", "server\"} 0"] {
                #expect(text.contains("trebuchet_connection_ends_total{cause=\"\(line)\n"))
            }
        }
    }

    @Test("an error thrown by a method is shown with its type and number, and invalid arguments with the reason")
    func errors() async throws {
        try await InspectorRig.with { server in
            await server.expose(PricedItemShop(actorSystem: server.actorSystem), as: "till")
        } _: { client, server, rig async throws in
            _ = try await rig.json("/inspect/calls")
            let listener = RecordingEventHandler([.server, .calls])
            server.addEventHandler(listener)
            let till = try client.resolve(PricedItemShop.self, id: "till")
            for secret in ["", "swordfish"] {
                await #expect(throws: TrebuchetError.self) { try await till.refuse(secret) }
            }
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            await #expect(throws: TrebuchetError.self) { try await shelf.refuse("swordfish") }
            for (actor, target) in [("shelf", "put(_:)"), ("till", "open(with:)")] {
                _ = try? await client.call(actor: actor, target: target, arguments: [Array("171819202122".utf8)])
            }
            let answer = try await rig.answer("/inspect/calls")
            let calls = try await rig.json("/inspect/calls")["calls"].list
            let problem = "ObservabilityTests.PricedItemShop.Problem"
            #expect(
                calls.map { $0["thrown"].text } == [
                    nil, nil, "ObservabilityTests.Shelf.Refused", "\(problem).notYours", "\(problem).soldOut",
                ])
            #expect(calls[1]["reason"].text?.contains("String") == true)
            // The arguments are redacted, and therefore also the reason.
            #expect(calls[0]["error"].text == "invalidArguments" && calls[0]["reason"].text == nil)
            #expect(!InspectorRig.body(answer).contains("notYours(\\\"swordfish"))
            // The number leads to the log line with the text; there is no such line for an error that the client received.
            let lines = listener.events.compactMap { if case .logMessage(_, let text) = $0 { text } else { nil } }
            for call in calls.suffix(2) {
                let number = try #require(call["errorNumber"].text)
                #expect(lines.contains { $0.contains("error \(number): ") })
            }
            #expect(calls[2]["errorNumber"].text == nil)
            let logged = try await rig.answer("/inspect/log")
            #expect(!InspectorRig.body(logged).contains("171819202122"))
        }
    }

    @Test("the other actors that a call has called are shown")
    func others() async throws {
        try await InspectorRig.with { server in
            await server.expose(PricedItemShop(actorSystem: server.actorSystem), as: "till")
            let system = server.actorSystem
            server.expose(Shelf.self, as: "made/*") { _ in Shelf(actorSystem: system) }
        } _: { client, server, rig async throws in
            _ = try await rig.json("/inspect/calls")
            let till = try client.resolve(PricedItemShop.self, id: "till")
            // An actor called in place, and one activated by its call.
            for name in ["shelf", "made/one"] { _ = try await till.sell("a", at: name) }
            let calls = try await rig.json("/inspect/actors/till")["calls"].list
            #expect(calls.map { $0["others"].texts } == [["made/one"], ["shelf"]])
            let shelves = try await rig.json("/inspect/actors/made%2Fone")["calls"].list
            #expect(shelves.map { $0["others"].value == nil } == [true])
        }
    }
}
