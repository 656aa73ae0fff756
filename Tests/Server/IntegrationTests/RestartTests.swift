import Testing
import Trebuchet
import TrebuchetTesting

/// Clients that reconnect to a server that was restarted over the same store.
@Suite(.timeLimit(.minutes(5))) struct RestartTests {
    /// A stream as a client remembers it.
    private struct RememberedStream {
        let epoch: String
        let last: Int
    }

    let store = MemoryStore()

    /// Runs a server over the store until `body` ends.
    private func withServer(_ body: (PersistedBacklog, RawPeer) async throws -> Void) async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), store: store)
        let backlog = PersistedBacklog(actorSystem: server.actorSystem)
        await server.expose(backlog, as: "backlog")
        let peer = try await RawPeer.connect(server.start())
        try await body(backlog, peer)
        peer.close()
        await server.shutdown(drain: .zero)
    }

    private func observe(_ peer: RawPeer, _ stream: String) async throws -> RememberedStream {
        peer.invoke("o", "backlog", stream)
        let start = try #require(await peer.nextText())
        let epoch = try #require(start.firstMatch(of: /"epoch":"([^"]+)"/)?.1)
        return try await RememberedStream(epoch: String(epoch), last: sequence(peer))
    }

    private func sequence(_ peer: RawPeer) async throws -> Int {
        try #require(await peer.nextText()?.firstMatch(of: /"sequenceNumber":(\d+)/).flatMap { Int($0.1) })
    }

    /// The messages for a client that resumes.
    private func resumed(_ peer: RawPeer, _ stream: String, _ seen: RememberedStream) async throws -> [String] {
        peer.send(
            #"{"type":"streamResume","payload":{"streamID":"s7","callID":"r","actorID":"backlog","#
                + #""targetIdentifier":"\#(stream)","epoch":"\#(seen.epoch)","lastSequence":\#(seen.last)}}"#)
        peer.invoke("c", "backlog", "count()")
        var messages: [String] = []
        while let text = await peer.nextText(), !text.contains("response") { messages.append(text) }
        return messages
    }

    @Test("a resumed stream with the newest value gets nothing, one with gaps gets the changes, others the whole value")
    func missedChanges() async throws {
        var seen: [RememberedStream] = []
        try await withServer { (backlog, peer) async throws in
            try await backlog.fill(1_000)
            seen.append(try await observe(peer, "observeEntries"))
            for number in 0..<3 {
                try await backlog.rename(number, "renamed")
                seen.append(RememberedStream(epoch: seen[0].epoch, last: try await sequence(peer)))
            }
        }
        try await withServer { (backlog, peer) async throws in
            let current = try await resumed(peer, "observeEntries", seen[3])
            #expect(current.count == 1)
            #expect(current.first?.contains(#""epoch":"\#(seen[0].epoch)""#) == true)
            try await backlog.rename(7, "again")
            let next = try #require(await peer.nextText())
            #expect(next.contains(#""base":\#(seen[3].last),"patch""#), "\(next.prefix(200))")
        }
        try await withServer { (_, peer) async throws in
            let missed = try await resumed(peer, "observeEntries", seen[1])
            #expect(missed.count == 4)
            #expect(missed.dropFirst().allSatisfy { $0.contains(#""patch""#) })
            #expect(missed.last?.contains("again") == true)
        }
        try await withServer { (_, peer) async throws in
            let another = try await resumed(
                peer, "observeEntries", RememberedStream(epoch: "another", last: seen[3].last))
            #expect(another.count == 2)
            #expect(another.last?.contains(#""data":[{"#) == true)
        }
    }

    @Test("a small state resumes too: with its number, as a whole value")
    func small() async throws {
        var seen: RememberedStream?
        try await withServer { (backlog, peer) async throws in
            try await backlog.title("one")
            seen = try await observe(peer, "observeTitle")
        }
        try await withServer { (backlog, peer) async throws in
            #expect(try await resumed(peer, "observeTitle", #require(seen)).count == 1)
            try await backlog.title("two")
            let next = try #require(await peer.nextText())
            #expect(next.contains(#""sequenceNumber":\#(try #require(seen).last + 1)"#), "\(next)")
            #expect(next.contains(#""data":"two""#))
        }
    }

    @Test("a state with delivery `.every` sends the missed versions across a restart")
    func every() async throws {
        var seen: RememberedStream?
        try await withServer { (backlog, peer) async throws in
            try await backlog.log((0..<1_000).map { "line \($0)" })
            seen = try await observe(peer, "observeLines")
            for number in 0..<3 { try await backlog.append("new \(number)") }
        }
        try await withServer { (backlog, peer) async throws in
            let missed = try await resumed(peer, "observeLines", #require(seen))
            #expect(missed.count == 4)
            for (number, text) in missed.dropFirst().enumerated() { #expect(text.contains("new \(number)")) }
            try await backlog.append("last")
            #expect(await peer.nextText()?.contains("last") == true)
        }
    }
}

/// Persisted states.
@Trebuchet
distributed actor PersistedBacklog {
    @StreamedState(persisted: true) var entries = KeyedCollection<Entry>()
    @StreamedState(persisted: true) var title = ""
    @StreamedState(delivery: .every(), persisted: true) var lines: [String] = []

    distributed func fill(_ count: Int) { entries = KeyedCollection(Entry.entries(count)) }
    distributed func rename(_ id: Int, _ title: String) { entries.update(id: id) { $0.title = title } }
    distributed func title(_ title: String) { self.title = title }
    distributed func log(_ lines: [String]) { self.lines = lines }
    distributed func append(_ line: String) { lines.append(line) }
    distributed func count() -> Int { entries.count }
}
