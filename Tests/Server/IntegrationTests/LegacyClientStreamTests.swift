import Foundation
import Networking
import Testing
import Trebuchet
import TrebuchetTesting

/// Has values that the versions encode differently, and texts that look like them.
@Trebuchet
private distributed actor Diary {
    struct Page: Codable, Sendable {
        var at: Date
        /// Texts with a date of version 3. The translator cannot distinguish the first from a date.
        var notes = ["2026-01-01T00:00:00.987Z", "at 2026-01-01T00:00:00.987Z"]
    }

    @StreamedState var state = Page(at: Date(timeIntervalSince1970: 1_700_000_000.987))
    @StreamedState(delivery: .every(buffer: 64)) var count: Int = 0
    @StreamedEvents var ticks: Int

    distributed func turn(to seconds: Double) -> Page {
        state.at = Date(timeIntervalSince1970: seconds)
        return state
    }
    distributed func add(_ times: Int) { for _ in 0..<times { count += 1 } }
}

@Trebuchet
private distributed actor Meter {
    @StreamedState(delivery: .every(buffer: 64), persisted: true) var count: Int = 0

    distributed func add(_ times: Int) { for _ in 0..<times { count += 1 } }
}

/// Streams for clients of protocols 1 and 2, beside those of version 3.
@Suite(.timeLimit(.minutes(5))) struct LegacyClientStreamTests {
    private func withDiary(
        limits: ServerLimits = ServerLimits(), _ body: (OldClient, TrebuchetServer) async throws -> Void
    ) async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), limits: limits)
        await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
        let client = OldClient(try await .connect(server.start(), subprotocols: []))
        try await body(client, server)
        client.peer.close()
        await server.shutdown(drain: .zero)
    }

    private func page(_ date: String) -> String {
        #"{"at":"\#(date)","notes":["2026-01-01T00:00:00Z","at 2026-01-01T00:00:00.987Z"]}"#
    }

    @Test("dates, and texts of their form, have whole seconds in results, states and filter results")
    func dates() async throws {
        try await withDiary { client, server in
            let peer = try await RawPeer.connect(#require(server.address))
            peer.invoke("1", "diary", "observeState")
            #expect(try #require(await peer.nextText()).contains("streamStart"))
            #expect(try #require(await peer.nextText()).contains(#""2023-11-14T22:13:20.987Z""#))
            let whole = try await client.observe("diary", "observeState")
            try await client.firstValue(of: whole)
            let filter = #"{"type":"predefined","name":"changed"}"#
            let distinct = try await client.observe("diary", "observeState", filter: filter)
            try await client.firstValue(of: distinct)
            let answer = try await client.call("diary", "turn(to:)", "1800000000.25")
            let pages = [page("2023-11-14T22:13:20Z"), page("2027-01-15T08:00:00Z")]
            #expect(answer.value == pages[1])
            #expect(client.values(of: whole.streamID) == pages)
            #expect(client.values(of: distinct.streamID) == pages)
            #expect(try #require(await peer.nextText()).contains(#"2027-01-15T08:00:00.250Z"#))
            peer.close()
        }
    }

    @Test("first and late subscribers get the first value, and legacy streams do not count as filters")
    func late() async throws {
        var limits = ServerLimits()
        limits.filters.perConnection = 1
        limits.filters.perState = 1
        try await withDiary(limits: limits) { client, server in
            for _ in 0..<3 { try await client.firstValue(of: client.observe("diary", "observeState")) }
            let filtered = try await client.observe(
                "diary", "observeState", filter: #"{"type":"predefined","name":"changed"}"#)
            try await client.firstValue(of: filtered)
            try await client.call("diary", "turn(to:)", "0")
            let late = OldClient(try await .connect(#require(server.address), subprotocols: []))
            let stream = try await late.observe("diary", "observeState")
            try await late.firstValue(of: stream)
            #expect(late.values(of: stream.streamID) == [page("1970-01-01T00:00:00Z")])
            late.peer.close()
        }
    }

    @Test("each version of a state with delivery `.every` arrives, also for a late subscriber")
    func every() async throws {
        try await withDiary { client, server in
            let stream = try await client.observe("diary", "observeCount")
            try await client.firstValue(of: stream)
            try await client.call("diary", "add(_:)", "20")
            #expect(client.values(of: stream.streamID) == (0...20).map(String.init))
            let late = OldClient(try await .connect(#require(server.address), subprotocols: []))
            let other = try await late.observe("diary", "observeCount")
            try await late.firstValue(of: other)
            try await late.call("diary", "add(_:)", "20")
            #expect(late.values(of: other.streamID) == (20...40).map(String.init))
            late.peer.close()
        }
    }

    @Test("each version of a persisted state with delivery `.every` is sent, also when one write has several")
    func persisted() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), store: MemoryStore())
        await server.expose(Meter(actorSystem: server.actorSystem), as: "meter")
        let client = OldClient(try await .connect(server.start(), subprotocols: []))
        let stream = try await client.observe("meter", "observeCount")
        try await client.firstValue(of: stream)
        for _ in 0..<3 { try await client.call("meter", "add(_:)", "7") }
        #expect(client.values(of: stream.streamID) == (0...21).map(String.init))
        client.peer.close()
        await server.shutdown(drain: .zero)
    }

    @Test("events are rejected")
    func events() async throws {
        try await withDiary { client, _ in
            let start = try await client.observe("diary", "observeTicks")
            #expect(start.kind == "streamStart")
            let end = try await client.next { $0.streamID == start.streamID }
            #expect(end.kind == "streamError" && end.errorMessage?.contains("events") == true)
        }
    }
}
