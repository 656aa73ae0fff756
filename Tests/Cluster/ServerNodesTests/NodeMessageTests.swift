import TestSupport
import Testing
import TrebuchetActors

@testable import Trebuchet
@testable import TrebuchetNodes

/// The encoding of messages between nodes and of log entries.
@Suite struct NodeMessageTests {
    private static let message = NodeMessage(
        from: "a#0123", number: 7, NodeMessage.Epochs(sender: 3, receiver: 4, last: 5),
        [
            NodeFrame(.open, channelID: 1, Array("{}".utf8)), NodeFrame(.toClient, channelID: .max, [1, 2, 3]),
            NodeFrame(.leaving, channelID: 0),
        ])

    @Test("a message is read as it was written")
    func roundTrip() {
        #expect(NodeMessage(Self.message.bytes) == Self.message)
        #expect(NodeMessage(NodeMessage(from: "", number: 0, .init(sender: 1, receiver: 0), []).bytes)?.frames == [])
    }

    @Test("a truncated message, or one of another version or kind, is refused")
    func damaged() {
        let bytes = Self.message.bytes
        let ends = [0, 1, 2].reduce(into: [NodeMessage.headBytes(sender: "a#0123")]) { ends, index in
            ends.append(ends[index] + Self.message.frames[index].byteCount)
        }
        for count in bytes.indices where !ends.contains(count) { #expect(NodeMessage(Array(bytes[..<count])) == nil) }
        #expect(NodeMessage([1] + bytes.dropFirst()) == nil)
        let epochs = NodeMessage.Epochs(sender: 2, receiver: 0)
        #expect(NodeMessage(NodeMessage(from: "a", number: 1, epochs, []).bytes + [99]) == nil)
        // A node has an epoch for each other node.
        #expect(NodeMessage(NodeMessage(from: "a", number: 1, .init(sender: 0, receiver: 2), []).bytes) == nil)
    }

    private func writes(_ items: [ActorLogEntry.Item]) -> [StateWrite] {
        items.compactMap { if case .write(let write) = $0 { write } else { nil } }
    }

    /// True if an item ends at this byte.
    private func isEnd(_ count: Int, _ bytes: [UInt8]) -> Bool {
        ActorLogEntry.items(Array(bytes[..<count]), of: "a") != nil
    }

    @Test("an actor's writes are read as they were written, and invalid ones are refused")
    func entries() {
        let key = StateKey("states", "a.count", partition: "a")
        let writes: [StateWrite] = [
            .put([1], key), .delete(key), .append(LogEntry(version: 3, baseVersion: 2, bytes: [4, 5]), key),
            StateWrite(key, .snapshotPart([6], index: 1, number: 9)),
            .snapshot(LogSnapshot(epoch: "e", version: 9, partCount: 2, bytes: []), key), StateWrite(key, .deleteLog),
        ]
        let bytes = ActorLogEntry.bytes(of: writes)
        #expect(ActorLogEntry.items(bytes, of: "a").map(self.writes) == writes)
        let behindLife = ActorLogEntry.items(ActorLogEntry.bytes(of: writes, incarnation: "l"), of: "a")
        #expect(behindLife.map(self.writes) == writes && behindLife?.count == writes.count + 1)
        // The version only, and each item but the last.
        #expect(bytes.indices.count { isEnd($0, bytes) } == writes.count)
        #expect(ActorLogEntry.items([9], of: "a") == nil)
    }

    @Test("a compacted log has the effect of all its entries")
    func compaction() throws {
        let (count, call) = (
            StateKey("states", "a.count", partition: "a"), StateKey("calls", "c/1", partition: "a")
        )
        var contents = ActorLogContents()
        try contents.apply([
            .write(.snapshot(LogSnapshot(epoch: "e", version: 1, bytes: [1]), count)), .write(.put([7], call)),
        ])
        for number in 2...5 as ClosedRange<UInt64> {
            if number == 4 { try contents.apply([.incarnation("f")]) }
            let entry = LogEntry(version: number, baseVersion: number - 1, bytes: [UInt8(number)])
            try contents.apply([.write(.append(entry, count))])
        }
        // An incomplete snapshot continues after it.
        try contents.apply([.write(StateWrite(count, .snapshotPart([8], index: 0, number: 4)))])
        var compacted = ActorLogContents()
        try compacted.apply(try #require(ActorLogEntry.items(contents.compacted, of: "a")))
        #expect(compacted.log(count) == contents.log(count))
        #expect(compacted.log(count)?.snapshot.epoch == "f")
        #expect(compacted.log(count)?.earlierIncarnations == [StreamIncarnation(epoch: "e", lastVersion: 3)])
        #expect(compacted.value(call) == [7])
        let whole = LogSnapshot(epoch: "f", version: 4, partCount: 1, bytes: [9])
        try compacted.apply([.write(.snapshot(whole, count))])
        #expect(compacted.log(count)?.snapshot.bytes == [8, 9])
        #expect(compacted.log(count)?.entries.map(\.version) == [5])
    }

    private func compacted(_ contents: ActorLogContents) throws -> ActorLogContents {
        var compacted = ActorLogContents()
        try compacted.apply(try #require(ActorLogEntry.items(contents.compacted, of: "a")))
        return compacted
    }

    private func call(_ number: Int, of connection: String = "c") -> StateKey {
        StateKey("calls", "\(connection)/\(number)", partition: "a")
    }

    @Test("compaction keeps the last 16,384 calls of a log, and records that the others were evicted")
    func calls() throws {
        var contents = ActorLogContents()
        for number in 1...16_400 { try contents.apply([.write(.put([1], call(number)))]) }
        let compacted = try compacted(try compacted(contents))
        #expect(compacted.value(call(16_400)) == [1])
        #expect(compacted.value(call(17)) == [1])
        for number in 1...16 { #expect(compacted.value(call(number)) == []) }
        #expect(compacted.value(call(16_401)) == nil)
        #expect(compacted.value(call(1, of: "d")) == nil)
    }

    @Test("evicted calls are recorded for the last 1,024 connections, ordered by their latest eviction")
    func goneConnections() throws {
        var contents = ActorLogContents()
        func evict(_ number: Int, of connection: String) throws {
            try contents.apply([.write(.delete(call(number, of: connection)))])
        }
        for number in 0..<1_100 {
            try evict(1, of: "c\(number)")
            // A connection that continues to call.
            try evict(number, of: "old")
        }
        let compacted = try compacted(try compacted(contents))
        #expect(compacted.value(call(1_099, of: "old")) == [])
        #expect(compacted.value(call(1, of: "c1099")) == [])
        #expect(compacted.value(call(1, of: "c0")) == nil)
    }

    @Test("large responses are evicted so that the log can be compacted; an evicted call is not executed again")
    func largeAnswers() throws {
        var contents = ActorLogContents()
        for number in 1...1_000 {
            try contents.apply([.write(.put([UInt8](repeating: 1, count: 17_000), call(number)))])
        }
        try contents.apply([.write(.put([1], call(7, of: "d"))), .write(.delete(call(7, of: "d")))])
        #expect(contents.compacted.count < 5 << 20)
        let compacted = try compacted(contents)
        #expect(compacted.value(call(1_000))?.count == 17_000)
        #expect(compacted.value(call(1)) == [])
        #expect(compacted.value(call(7, of: "d")) == [])
        #expect(compacted.value(call(8, of: "d")) == nil)
    }
}
