import Networking
import Platform
import Synchronization
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

@Suite(.timeLimit(.minutes(5))) struct FairTurnsTests {
    private typealias Queue = FairQueue<Int, String, String>

    private static func caller(_ connection: Int, network: String? = nil, principal: String? = nil) -> Queue.Caller {
        Queue.Caller(
            network: network, member: principal.map { .principal(ByteText($0)) } ?? .connection(connection))
    }

    /// Takes jobs with these costs until the queue is empty.
    private static func order(
        _ queue: inout Queue, _ jobs: [(name: String, caller: Queue.Caller, cost: Int, count: Int)]
    ) -> [String] {
        var number: UInt64 = 0
        for job in jobs {
            for _ in 0..<job.count {
                number += 1
                queue.insert(job.name, number: number, of: job.caller)
            }
        }
        var order: [String] = []
        while let name = queue.removeFirst() {
            order.append(name)
            if let job = jobs.first(where: { $0.name == name }) { queue.charge(job.cost, to: job.caller) }
        }
        return order
    }

    @Test("a caller has one share, however many jobs it has, in whatever order they arrive")
    func jobs() {
        var queue = Queue()
        let order = Self.order(
            &queue,
            [("many", Self.caller(1), 500, 60), ("one", Self.caller(2), 500, 1), ("few", Self.caller(3), 500, 3)])
        #expect(order.count == 64 && queue.isEmpty)
        #expect(Set(order.prefix(3)) == ["many", "one", "few"])
        #expect(order.prefix(7).count { $0 == "few" } == 3, "\(order.prefix(7))")
    }

    @Test("a network has one share, and each of its principals and connections has an equal part of that")
    func networks() {
        let other = ("other", caller: Self.caller(9, network: "b"), cost: 1_000, count: 80)
        func counts(_ callers: [Queue.Caller], first count: Int) -> [Int] {
            var queue = Queue()
            let jobs = callers.enumerated().map { ("\($0.offset)", caller: $0.element, cost: 1_000, count: 80) }
            let order = Self.order(&queue, jobs + [other]).prefix(count)
            return (0..<callers.count).map { place in order.count { $0 == "\(place)" } }
        }
        #expect(counts([Self.caller(1, network: "a"), Self.caller(2, network: "a")], first: 40) == [10, 10])
        // A principal has one share, with its jobs in the order of their numbers.
        let principal = (1...2).map { Self.caller($0, network: "a", principal: "p") }
        #expect(counts(principal + [Self.caller(3, network: "a")], first: 40) == [10, 0, 10])
        // Loopback callers.
        #expect(counts([Self.caller(1), Self.caller(2)], first: 39) == [13, 13])
    }

    @Test("cost counts, not jobs: a caller with cheap jobs has more of them")
    func costs() {
        var queue = Queue()
        let order = Self.order(
            &queue, [("long", Self.caller(1), 4_000, 50), ("short", Self.caller(2), 1_000, 50)])
        #expect((38...42).contains(order.prefix(50).count { $0 == "short" }))
    }

    @Test("waiting jobs are counted for a caller and for its network")
    func waitingCounts() {
        var queue = Queue()
        let (many, one) = (Self.caller(1, network: "a"), Self.caller(2, network: "a"))
        for number in 1...5 { queue.insert("many", number: UInt64(number), of: many) }
        #expect(queue.waitingCounts(of: many) == (5, 5) && queue.waitingCounts(of: one) == (0, 5))
        #expect(queue.waitingCounts(of: Self.caller(1, network: "b")) == (0, 0))
        queue.insert("one", number: 6, of: one)
        #expect(queue.waitingCounts(of: one) == (1, 6))
    }

    @Test("a debt falls while no jobs wait: it does not let a caller wait behind each of many others")
    func settled() {
        func place(ofOneAfter pause: Int) -> Int? {
            var queue = Queue()
            let one = Self.caller(0, network: "one")
            queue.charge(8_000_000, to: one)
            queue.settle(pause)
            let others = (1...32).map {
                (name: "\($0)", caller: Self.caller($0, network: "\($0)"), cost: 500_000, count: 40)
            }
            return Self.order(&queue, others + [("one", one, 100_000, 1)]).firstIndex(of: "one")
        }
        #expect(place(ofOneAfter: 0) ?? 0 > 400)
        #expect(place(ofOneAfter: 10_000_000) ?? 100 <= 32)
        // The members of a network, too.
        var queue = Queue()
        let members = (1...3).map { Self.caller($0, network: "a") }
        queue.charge(8_000_000, to: members[0])
        queue.settle(10_000_000)
        let order = Self.order(&queue, members.map { ("\($0.member ?? .connection(0))", $0, 500_000, 20) })
        #expect(order.prefix(3).contains("\(members[0].member ?? .connection(0))"))
    }

    @Test("a debt falls between slices too, not only when a call begins to wait")
    func settledBetweenSlices() async {
        let reactor = ReactorGroup.forServer(count: 1).reactors[0]
        let mustWait = await withCheckedContinuation { continuation in
            reactor.execute { continuation.resume(returning: Self.mustWait(on: reactor)) }
        }
        #expect(mustWait == [true, false])
    }

    /// Returns whether a caller must wait after its slice of 3 ms, and whether it must after a pause and a slice of another one.
    private static func mustWait(on reactor: Reactor) -> [Bool] {
        let turns = FairTurns(reactor, at: 0)
        let callers = (0..<2).map { _ in CallerConnection(principal: nil, remoteAddress: nil) }
        var works = callers.map { FairTurns.Work($0) }
        func useTime(_ place: Int, until now: UInt64) {
            turns.charge(3_000_000, within: 3_000_000, to: &works[place], at: now)
        }
        useTime(0, until: 3_000_000)
        let before = turns.mustWait(works[0])
        useTime(1, until: 26_000_000)
        return [before, turns.mustWait(works[0])]
    }

    @Test("the time of a slice is that of its thread: time of other threads is not counted")
    func threadTime() {
        var time = ThreadTime()
        _ = time.sinceLastReading()
        let start = MonotonicClock.now
        let ready = ThreadSemaphore()
        ready.wait(within: .milliseconds(20))
        #expect(MonotonicClock.now - start >= 20_000_000 && time.sinceLastReading() < 10_000_000)
    }

    @Test("cost while no others waited counts little, and an idle caller saves none up")
    func idle() {
        var queue = Queue()
        let (busy, new) = (Self.caller(1), Self.caller(2))
        for _ in 0..<100 { queue.charge(2_000_000, to: busy) }
        #expect(queue.mustWait(busy) && !queue.mustWait(new))
        let order = Self.order(&queue, [("busy", busy, 2_000_000, 50), ("new", new, 2_000_000, 50)])
        #expect((16...18).contains(order.prefix(40).count { $0 == "busy" }), "\(order)")
        // The estimate of a job is returned.
        queue.insert("a", number: 1, of: new)
        _ = queue.removeFirst(charging: 500)
        queue.charge(-500, to: new)
        #expect(!queue.mustWait(new))
    }

    @Test("shared work does not wait in the share of the caller that has caused it")
    func shared() {
        var queue = Queue()
        let (busy, results) = (Self.caller(1), Queue.Caller(network: nil, member: .shared(ObjectIdentifier(Self.self))))
        for number in 1...20 { queue.insert("busy", number: UInt64(number), of: busy) }
        queue.charge(5_000_000, to: busy)
        queue.insert("other", number: 21, of: Self.caller(2))
        queue.insert("results", number: 22, of: results)
        #expect(Set((0..<2).map { _ in queue.removeFirst() ?? "" }) == ["other", "results"])
        // All shared work has one share, however many collections it belongs to.
        let objects = (0..<8).map { _ in Box() }
        let shared = objects.map { Queue.Caller(network: nil, member: .shared(ObjectIdentifier($0))) }
        let jobs = shared.enumerated().map { ("\($0.offset)", caller: $0.element, cost: 1_000_000, count: 10) }
        var other = Queue()
        let order = Self.order(&other, jobs + [("caller", Self.caller(3), 1_000_000, 10)])
        #expect((9...10).contains(order.prefix(20).count { $0 == "caller" }), "\(order.prefix(20))")
        withExtendedLifetime(objects) {}
    }

    private final class Box {}

    @Test("a job that continues is before later ones of its caller")
    func numbers() {
        var queue = Queue()
        for number in [3, 5, 1, 4, 2] { queue.insert("\(number)", number: UInt64(number), of: Self.caller(1)) }
        #expect((0..<5).map { _ in queue.removeFirst() } == ["1", "2", "3", "4", "5"])
    }

    @Test("callers without jobs are forgotten when there are many", arguments: [1, 20_000_000])
    func forgotten(cost: Int) {
        var queue = Queue()
        queue.insert("waiting", number: 0, of: Self.caller(-1))
        for number in 0..<5_000 {
            queue.charge(cost + number, to: Self.caller(number, network: "\(number % 3 == 0 ? 0 : number)"))
            queue.charge(cost, to: Self.caller(number))
        }
        #expect(queue.groupCount <= 2_050 && queue.removeFirst() == "waiting")
        for number in 0..<5_000 { queue.charge(cost + number, to: Self.caller(number)) }
        #expect(queue.groupCount <= 2_050)
    }

    @Test(
        "a caller with 60 calls to 60 collections has as many slices as one with a single call",
        arguments: ["commit", "get", "open"])
    func collections(kind: String) async throws {
        var limits = CollectionLimits()
        limits.writesPerConnection = RateLimit(callsPerSecond: 10_000, burst: 10_000)
        limits.writesPerPrincipal = limits.writesPerConnection
        let many = 60
        let order = CallOrder(count: kind == "open" ? many + 1 : many, other: "bob")
        try await CollectionTestEnvironment.run(
            rules: ClosureRules { _, _, _ in }, limits: limits, reactors: 1, interceptors: [order]
        ) { environment in
            let (ada, bob) = (environment.guest("ada"), environment.guest("bob"))
            try await ada.client.connect()
            try await bob.client.connect()
            let fields = JSONObject((0..<500).map { (key: "k\(10_000 + $0)", value: .integer(1)) })
            // Each call takes several slices.
            let query = CollectionQuery(where: (0..<20).map { .field("k\(10_000 + $0)", doesNotEqual: .integer(2)) })
            let updates = (0..<40).map { DocumentWrite(.update(id: "0", fields: ["n": .integer(Int64($0))])) }
            for number in 0...many {
                let adds = (0..<4).map { DocumentCommand.add(DocumentID("\($0)"), fields) }
                _ = try await bob.collection("c\(number)").commit(adds, from: "0123456789abcdef")
            }
            func call(_ guest: CollectionTestClient, _ number: Int) async throws {
                let collection = try guest.collection("c\(number)")
                guard kind != "commit" else {
                    let mutation = DocumentMutation(number: 100 + number, writes: updates)
                    let outcomes = try await collection.commit([mutation], from: "fedcba9876543210")
                    #expect(outcomes.map(\.error) == [nil])
                    return
                }
                // Both callers open one query.
                if kind == "open", number == many { return _ = try await collection.open(EncodedJSON(query.value)) }
                _ = try await collection.get(query)
            }
            order.hold()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<(kind == "open" ? many + 1 : many) {
                    group.addTask { try await call(ada, number) }
                }
                group.addTask { try await call(bob, many) }
                try await group.waitForAll()
            }
            let before = try #require(order.endedDuringOtherCall)
            #expect(before < many / 3, "\(before)")
        }
    }
}

/// Holds the calls of two callers until all have arrived; then the call of the other caller begins when three of the first caller have
/// ended. So the order does not depend on the speed of the clients.
private final class CallOrder: ServerInterceptor {
    private struct State {
        var isHolding = false
        var arrived = 0
        var ended = 0
        var endedAtBegin: Int?
        var endedDuringOtherCall: Int?
        var waiting: [CheckedContinuation<Void, Never>] = []
        var other: CheckedContinuation<Void, Never>?

        mutating func wait(for continuation: CheckedContinuation<Void, Never>, isOther: Bool) {
            if isOther { other = continuation } else { waiting.append(continuation) }
            arrived += 1
        }
    }

    private let (count, other): (Int, String)
    private let state = Mutex(State())

    init(count: Int, other: String) { (self.count, self.other) = (count, other) }

    /// The number of calls of the first caller that have ended during the call of the other one.
    var endedDuringOtherCall: Int? { state.withLock { $0.endedDuringOtherCall } }

    func hold() { state.withLock { $0.isHolding = true } }

    func call(_ request: ServerRequest, next: Next) async throws -> InterceptedResult {
        guard state.withLock({ $0.isHolding }) else { return try await next(request) }
        let isOther = request.principal?.id == other
        await withCheckedContinuation { continuation in
            let begins = state.withLock { state in
                state.wait(for: continuation, isOther: isOther)
                guard state.arrived == count + 1 else { return [CheckedContinuation<Void, Never>]() }
                defer { state.waiting = [] }
                return state.waiting
            }
            for call in begins { call.resume() }
        }
        let result = try await next(request)
        let begin = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if isOther {
                state.endedDuringOtherCall = state.ended - (state.endedAtBegin ?? 0)
                return nil
            }
            state.ended += 1
            guard state.ended == 3 else { return nil }
            state.endedAtBegin = state.ended
            return state.other
        }
        begin?.resume()
        return result
    }
}
