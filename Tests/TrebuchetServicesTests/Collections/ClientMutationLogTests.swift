import Platform
import Testing
import Trebuchet

@testable import TrebuchetServices

@Suite struct ClientMutationLogTests {
    private static let mutation = DocumentMutation(number: 1, command: .add("a"))

    private static func remember(
        _ name: String, _ scope: MutationScope?, in log: inout ClientMutationLog, most: Int,
        error: CollectionError? = nil
    ) {
        let outcome = MutationOutcome(number: 1, revision: 1, error: error)
        log.remember(outcome, of: mutation, by: ByteText(name), scope: scope, .unwritten, most: most)
    }

    private static func isKnown(_ name: String, in log: ClientMutationLog) -> Bool {
        log.outcome(of: mutation, by: ByteText(name)) != nil
    }

    @Test("a party with more clients than its share evicts its own, whatever secrets it makes up")
    func shares() {
        var log = ClientMutationLog([:])
        for number in 0..<8 { Self.remember("ada-\(number)", .principal(ByteText("ada")), in: &log, most: 64) }
        Self.remember("anonymous", nil, in: &log, most: 64)
        for number in 0..<1_000 { Self.remember("mallory-\(number)", .host(7), in: &log, most: 64) }
        #expect(log.count == 64)
        for number in 0..<8 { #expect(Self.isKnown("ada-\(number)", in: log)) }
        #expect(Self.isKnown("anonymous", in: log) && Self.isKnown("mallory-999", in: log))
        #expect(!Self.isKnown("mallory-0", in: log))
        // A party below its share takes the place of the least recently used client.
        Self.remember("bob", .host(8), in: &log, most: 64)
        #expect(log.count == 64 && Self.isKnown("bob", in: log) && !Self.isKnown("ada-0", in: log))
    }

    @Test("the bytes of all outcomes are counted, and limited")
    func bytes() {
        var log = ClientMutationLog([:])
        let error = CollectionError.invalidDocument(String(repeating: "x", count: 1 << 20))
        for number in 0..<100 { Self.remember("client-\(number)", .host(7), in: &log, most: 10_000, error: error) }
        #expect(log.byteCount <= ClientMutationLog.maximumBytes && log.count <= 32 && log.count >= 16)
        #expect(Self.isKnown("client-99", in: log))
        for number in 0..<100 { Self.remember("small-\(number)", nil, in: &log, most: 1) }
        #expect(log.count == 1 && log.byteCount < 1_000)
    }

    @Test("what is counted is that of the clients, also after a failed write")
    func discarded() {
        var log = ClientMutationLog([:])
        let outcome = MutationOutcome(number: 1, revision: 1)
        log.remember(outcome, of: Self.mutation, by: ByteText("a"), scope: .host(1), .written, most: 10)
        let before = log.byteCount
        let changes = log.beginWrite()
        log.endWrite(changes)
        let later = DocumentMutation(number: 2, command: .add("b"))
        log.remember(
            MutationOutcome(number: 2, revision: 2), of: later, by: ByteText("a"), scope: .host(1), .written, most: 10)
        log.remember(outcome, of: Self.mutation, by: ByteText("b"), scope: .host(2), .written, most: 10)
        #expect(log.byteCount > before)
        log.discardUnwritten()
        #expect(log.byteCount == before && log.count == 1)
    }
}
