import Platform
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

@Suite struct ClientMutationLogTests {
    private static let mutation = DocumentMutation(number: 1, command: .add("a"))

    private static func remember(
        _ name: String, _ scope: MutationScope?, in log: inout ClientMutationLog, most: Int,
        _ basis: ClientMutationLog.Basis = .unwritten, error: CollectionError? = nil
    ) {
        let outcome = MutationOutcome(number: 1, revision: 1, error: error)
        log.remember(outcome, of: mutation, by: ByteText(name), scope: scope, basis, most: most)
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
        // Another scope takes the place of a client of the scope with the most.
        Self.remember("bob", .host(8), in: &log, most: 64)
        #expect(log.count == 64 && Self.isKnown("bob", in: log) && Self.isKnown("ada-0", in: log))
    }

    @Test("outcomes without changes never evict one with changes", arguments: [nil, 1, 18])
    func effects(hosts: Int?) {
        var log = ClientMutationLog([:])
        Self.remember("ada", .host(100), in: &log, most: 640, .written)
        log.endWrite(log.beginWrite())
        for number in 0..<2_000 {
            let scope = hosts.map { MutationScope.host(UInt32(number % $0)) }
            Self.remember("mallory-\(number)", scope, in: &log, most: 640)
        }
        let isKnown = Self.isKnown("ada", in: log)
        #expect(isKnown)
        // Also when no other is left to evict.
        for number in 0..<640 { Self.remember("bob-\(number)", nil, in: &log, most: 640, .written) }
        Self.remember("eve", .host(101), in: &log, most: 640)
        #expect(Self.isKnown("ada", in: log) && !Self.isKnown("eve", in: log) && log.count == 640)
    }

    @Test("many parties with changes evict clients of their own, and not those of a scope with few")
    func parties() {
        var log = ClientMutationLog([:])
        Self.remember("ada", .host(100), in: &log, most: 640, .written)
        for number in 0..<2_000 {
            Self.remember("mallory-\(number)", .host(UInt32(number % 18)), in: &log, most: 640, .written)
        }
        #expect(Self.isKnown("ada", in: log) && log.count == 640)
        #expect(Self.isKnown("mallory-1999", in: log))
    }

    @Test("the scope with the most bytes loses outcomes when these have too many bytes")
    func partyBytes() {
        var log = ClientMutationLog([:])
        Self.remember("ada", .host(100), in: &log, most: 10_000, .written)
        let error = CollectionError.invalidDocument(String(repeating: "x", count: 1 << 18))
        for number in 0..<300 {
            Self.remember(
                "mallory-\(number)", .host(UInt32(number % 18)), in: &log, most: 10_000, .written, error: error)
        }
        #expect(Self.isKnown("ada", in: log) && log.byteCount <= ClientMutationLog.maximumBytes && log.count > 100)
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

@Suite struct LargestFirstTests {
    @Test("the largest key is first, and among equal ones the one that was changed least recently", arguments: 1...20)
    func order(seed: UInt64) {
        var random = RandomSource(seed: seed)
        var heap = LargestFirst<Int>()
        var sizes: [Int: (size: Int, step: Int)] = [:]
        for step in 1...500 {
            let key = Int.random(in: 0..<20, using: &random)
            let size = max(0, Int.random(in: -2..<8, using: &random))
            heap.setSize(size, of: key)
            if size == 0 { sizes[key] = nil } else if sizes[key]?.size != size { sizes[key] = (size, step) }
            let first = sizes.max { ($0.value.size, $1.value.step) < ($1.value.size, $0.value.step) }
            #expect(heap.first == first?.key)
        }
    }
}
