import NodeSupport
import Foundation
import Platform
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetActors
import TrebuchetCluster

/// One random sequence of events from a seed: nodes join, leave, die and lose their coordination store while clients call and observe. The
/// clock of the coordination store, which governs leases, advances only when the sequence advances it. In the end the outcomes are
/// compared with the states.
final class Schedule: Sendable {
    private struct ScheduledNode {
        let node: Node
        let engineRoute: FaultyEngine
    }

    private static let isVerbose = ProcessInfo.processInfo.environment["TREBUCHET_SEED"] != nil
    private static let clients = 5
    private static let callsPerClient = 16

    private let seed: UInt64
    private let clock = ManualEngineClock()
    private let engine: MemoryEngine
    private let places = Mutex<[ScheduledNode]>([])
    private let born = Mutex(0)
    /// The number of occurrences of each fault.
    let faults = Mutex<[String: Int]>([:])
    private let book = OrderedCallChecker()

    init(seed: UInt64) {
        self.seed = seed
        engine = MemoryEngine(clock: clock)
    }

    private static var settings: ClusterMemberSettings {
        var settings = ClusterMemberSettings()
        settings.roundInterval = .milliseconds(5)
        settings.concurrentHandovers = 256
        settings.handoverTimeout = .milliseconds(500)
        return settings
    }

    /// Returns the contradictions.
    func run() async throws -> [String] {
        var random = RandomSource(seed: seed)
        for _ in 0..<3 { try await start() }
        for _ in 0..<12 { await pass(200) }
        let clients = try await connect()
        let observers = try clients.enumerated().flatMap { number, client in
            try OrderedCallChecker.names.filter { _ in Int.random(in: 0..<2, using: &random) == 0 }.map {
                OrderedCallObserver(try client.resolve(OrderedCallLog.self, id: $0), $0, "client \(number)", book)
            }
        }
        let reading = observers.map { observer in Task { await observer.run() } }
        let isOver = Flag()
        let calling = Task { [seed] in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, client) in clients.enumerated() {
                    let random = RandomSource(seed: seed &* 1_000 &+ UInt64(number))
                    group.addTask { try await self.call(client, first: (number + 1) * 1_000, random) }
                }
                try await group.waitForAll()
            }
            isOver.set()
        }
        for _ in 0..<12 where !isOver.isSet {
            try await change(&random)
            for _ in 0..<Int.random(in: 1...8, using: &random) { await pass(Int.random(in: 50...400, using: &random)) }
            let ended = book.ended
            _ = await eventually(within: .milliseconds(50)) { isOver.isSet || book.ended > ended + 4 }
        }
        heal()
        let end = await eventually {
            await pass(200)
            return isOver.isSet
        }
        if !end { book.found("calls do not end") }
        try await calling.value
        // The slots of a node that has just died are taken over as time passes.
        let isCompared = Flag()
        let passing = Task { while !isCompared.isSet { await pass(200) } }
        defer { isCompared.set() }
        try await compare(clients[0], observers)
        isCompared.set()
        await passing.value
        for observer in observers { observer.isClosed.set() }
        for client in clients { await client.close() }
        for task in reading { await task.value }
        for place in places.withLock({ $0 }) { await place.node.stop() }
        return book.findings
    }

    // MARK: Time and events

    private func start() async throws {
        let number = born.withLock { born in
            born += 1
            return born
        }
        let engineRoute = FaultyEngine(engine)
        let node = try Node(
            "n\(number)", engine, through: engineRoute, settings: Self.settings, clock: clock,
            isReached: number % 2 == 0)
        try await node.start()
        places.withLock { $0.append(ScheduledNode(node: node, engineRoute: engineRoute)) }
    }

    /// Advances the time, and runs a round of each node.
    private func pass(_ milliseconds: Int) async {
        let places = places.withLock { $0 }
        let rounds = places.map(\.engineRoute.roundCount)
        clock.advance(by: .milliseconds(milliseconds))
        _ = await eventually(within: .seconds(2)) { zip(places, rounds).allSatisfy { $0.engineRoute.roundCount > $1 } }
    }

    private func heal() { for place in places.withLock({ $0 }) { place.engineRoute.set { $0 = .init() } } }

    private func change(_ random: inout RandomSource) async throws {
        let places = places.withLock { $0 }
        guard let place = places.randomElement(using: &random) else { return }
        let deeds = [
            "kill", "kill", "stop", "start", "away", "hanging writes", "failing writes", "lost answers",
            "lost messages",
            "held messages", "healed", "healed",
        ]
        guard let deed = deeds.randomElement(using: &random) else { return }
        switch deed {
        case "kill":
            self.places.withLock { $0.removeAll { $0.node === place.node } }
            await place.node.server.cut()
            try await start()
        case "stop":
            place.engineRoute.set { $0 = .init() }
            let isDown = Flag()
            let stopping = Task {
                await place.node.server.shutdown(drain: .seconds(2))
                isDown.set()
            }
            while !isDown.isSet {
                await pass(100)
                _ = await eventually(within: .milliseconds(20)) { isDown.isSet }
            }
            await stopping.value
            self.places.withLock { $0.removeAll { $0.node === place.node } }
            try await start()
        case "start":
            guard places.count < 4 else { return }
            try await start()
        case "away": place.engineRoute.set { $0.isAway = true }
        case "hanging writes": place.engineRoute.set { $0.hangsAppends = true }
        case "failing writes": place.engineRoute.set { $0.failsAppends = true }
        case "lost answers": place.engineRoute.set { $0.losesAnswers = true }
        case "lost messages": place.engineRoute.set { $0.losesMessages = true }
        case "held messages": place.engineRoute.set { $0.holdsMessages = true }
        default: heal()
        }
        faults.withLock { $0[deed, default: 0] += 1 }
        if Self.isVerbose {
            print("\(deed) \(place.node.member.node.name) at \(clock.milliseconds), \(book.ended) calls ended")
        }
    }

    // MARK: Clients

    private func connect() async throws -> [TrebuchetClient] {
        var options = TrebuchetClient.Options()
        options.reconnect.initialDelay = .milliseconds(5)
        options.reconnect.maximumDelay = .milliseconds(50)
        options.reconnect.retriesFirstConnection = true
        options.callTimeout = .seconds(40)
        var clients: [TrebuchetClient] = []
        for _ in 0..<Self.clients {
            let transport = NodeSwitchingTransport { self.places.withLock { $0.map(\.node) } }
            let client = TrebuchetClient(transport: transport, options: options)
            try await client.connect()
            clients.append(client)
        }
        return clients
    }

    private func call(_ client: TrebuchetClient, first: Int, _ source: RandomSource) async throws {
        var random = source
        for number in 0..<Self.callsPerClient {
            guard let name = OrderedCallChecker.names.randomElement(using: &random) else { return }
            let roll = try client.resolve(OrderedCallLog.self, id: name)
            await book.note(first + number, on: name) { try await roll.sign(first + number) }
        }
    }

    private func compare(_ client: TrebuchetClient, _ observers: [OrderedCallObserver]) async throws {
        var rolls: [String: [Int]] = [:]
        for name in OrderedCallChecker.names {
            let roll = try client.resolve(OrderedCallLog.self, id: name)
            // One more call, so that each observer has a version to wait for.
            _ = try await roll.sign(0)
            rolls[name] = try await roll.read()
        }
        book.compare(with: rolls)
        for observer in observers {
            let end = rolls[observer.name]
            let came = await eventually(within: .seconds(10)) {
                observer.last == end
            }
            if !came {
                book.found(
                    "\(observer.who) has \(observer.last) of \(observer.name), which has \(end ?? [])"
                )
            }
        }
    }
}
