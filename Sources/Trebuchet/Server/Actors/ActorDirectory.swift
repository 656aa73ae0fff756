internal import Distributed
internal import Networking
internal import Synchronization
internal import TrebuchetCluster

/// The actors that a server has exposed, by name, and those that it makes on demand.
final class ActorDirectory: ActorHost, Sendable {
    /// Makes the record of an actor for a name.
    typealias Factory = @Sendable (String) async throws -> ActorRecord

    /// How the actor of a name is made, and what is known of it before.
    struct Registration: Sendable {
        let type: ActorType
        let make: Factory
        /// Set for actors that go when nobody uses them.
        var idle: IdlePolicy?
        /// Whether it lives on one node of several, which owns the slot of its name.
        var isPlaced = false
    }

    private struct Pattern {
        let prefix: String
        let registration: Registration
    }

    private struct Contents {
        var records: [ActorName: ActorRecord] = [:]
        var patterns: [Pattern] = []
        var hasPlaced = false
        /// Whether actors of a pattern may go while their server is there.
        var mayGo = false
        /// Of actors that were exposed by name and have to be loaded.
        var loading: [ActorName: Registration] = [:]
        var activating: [ActorName: Task<ActorRecord, any Error>] = [:]
        /// Actors that are being let go: the next of that name waits for it.
        var leaving: [ActorName: (number: Int, task: Task<Void, Never>)] = [:]
        /// So many have been, so that each has a number.
        var leavings = 0

        func pattern(for name: ActorName) -> Registration? {
            name.isTooLong ? nil : patterns.first { name.isBehind($0.prefix) }?.registration
        }
    }

    private let contents = Mutex(Contents())
    private let shares: ShareBook
    private let ways = Mutex<(@Sendable (String) -> (any RemoteServer)?)?>(nil)

    init(shares: ShareBook) { self.shares = shares }

    func insert(_ record: ActorRecord) {
        let name = ActorName(record.name)
        contents.withLock { contents in
            if contents.hasPlaced, contents.pattern(for: name)?.isPlaced == true {
                record.slot = ClusterSlot(of: record.name).number
            }
            contents.records[name] = record
            contents.loading[name] = nil
        }
    }

    /// The actor of this name is there, but its record is made when it is first called, and anew after a failure.
    func insert(_ name: ActorName, _ registration: Registration) {
        contents.withLock { contents in
            contents.records[name] = nil
            contents.loading[name] = registration
        }
    }

    func remove(_ name: ActorName) {
        let removed = contents.withLock { contents in
            contents.loading[name] = nil
            return contents.records.removeValue(forKey: name)
        }
        removed?.giveBackStake()
    }

    func record(_ name: ActorName) -> ActorRecord? { contents.withLock { $0.records[name] } }
    func actor(_ name: ActorName) -> (any DistributedActor)? { record(name)?.actor }

    /// Whether an actor that was exposed by name has still to be loaded.
    func isUnloaded(_ name: ActorName) -> Bool {
        contents.withLock { $0.loading[name] != nil && $0.records[name] == nil }
    }

    func mayGo(_ name: ActorName) -> Bool {
        contents.withLock { contents in
            guard contents.mayGo, contents.loading[name] == nil, let pattern = contents.pattern(for: name) else {
                return false
            }
            return pattern.isPlaced || pattern.idle != nil
        }
    }

    func way(to name: String) -> (any RemoteServer)? { ways.withLock { $0 }?(name) }

    /// Set before the server is handed out; nil when it goes.
    func reach(by way: (@Sendable (String) -> (any RemoteServer)?)?) { ways.withLock { $0 = way } }

    /// The type of the actor of this name, made or not; nil when there is none. Nothing is made.
    func type(of name: ActorName) -> ActorType? {
        contents.withLock { contents in
            contents.records[name]?.type ?? contents.loading[name]?.type ?? contents.pattern(for: name)?.type
        }
    }

    /// The type of an actor that lives on one node of several; nil for others.
    func placedType(of name: ActorName) -> ActorType? {
        contents.withLock { contents in
            guard contents.hasPlaced, contents.loading[name] == nil, let pattern = contents.pattern(for: name),
                pattern.isPlaced
            else { return nil }
            return pattern.type
        }
    }

    /// Of a slot: those that stand ready, and what is under way of making others and of letting others go.
    func placed(
        in slot: ClusterSlot
    ) -> (records: [ActorRecord], making: [Task<ActorRecord, any Error>], leaving: [Task<Void, Never>]) {
        contents.withLock { contents in
            guard contents.hasPlaced else { return ([], [], []) }
            return (
                contents.records.values.filter { $0.slot == slot.number },
                contents.activating.filter { ClusterSlot(of: $0.key.text) == slot }.map(\.value),
                contents.leaving.filter { ClusterSlot(of: $0.key.text) == slot }.map(\.value.task)
            )
        }
    }

    /// The types of what was exposed, by name; of actors on demand by the pattern of their names. Those that were made of them are
    /// not among it.
    var exposedTypes: [(name: String, type: ActorType)] {
        contents.withLock { contents in
            contents.records.values.filter { $0.stake == nil }.map { ($0.name, $0.type) }
                + contents.loading.map { ($0.key.text, $0.value.type) }
                + contents.patterns.map { ($0.prefix + "*", $0.registration.type) }
        }
    }

    /// All that there is: those that stand ready, those that have to be loaded first, and how the names begin of those that are made on
    /// demand.
    var all: (ready: [ActorRecord], unloaded: [(String, ActorType)], patterns: [(prefix: String, type: ActorType)]) {
        contents.withLock { contents in
            (
                Array(contents.records.values),
                contents.loading.filter { contents.records[$0.key] == nil }.map { ($0.key.text, $0.value.type) },
                contents.patterns.map { ($0.prefix, $0.registration.type) }
            )
        }
    }

    /// Actors for names that begin with `prefix` are made when they are first called. The longest prefix wins.
    func insert(prefix: String, _ registration: Registration) {
        contents.withLock { contents in
            contents.patterns.removeAll { $0.prefix.utf8.elementsEqual(prefix.utf8) }
            contents.patterns.append(Pattern(prefix: prefix, registration: registration))
            contents.hasPlaced = contents.patterns.contains { $0.registration.isPlaced }
            contents.mayGo = contents.hasPlaced || contents.patterns.contains { $0.registration.idle != nil }
            contents.patterns.sort { $0.prefix.utf8.count > $1.prefix.utf8.count }
        }
    }

    /// The task that makes the actor of this name, the same one for all who ask meanwhile; nil when there is nothing to make.
    ///
    /// - Parameters:
    ///   - parties: whose share of the actors on demand it counts in.
    ///   - reactor: where it lives if it is made: that of who asks first.
    func activate(
        _ name: ActorName, for parties: Parties?, on reactor: Reactor? = nil
    ) throws(TrebuchetError) -> Task<ActorRecord, any Error>? {
        try contents.withLock { contents throws(TrebuchetError) in
            if let running = contents.activating[name] { return running }
            // Another reactor may have asked for it, and got it, since the caller looked.
            if let record = contents.records[name] { return Task { record } }
            let leaving = contents.leaving[name]?.task
            let (registration, stake): (Registration, Stake?)
            if let load = contents.loading[name] {
                (registration, stake) = (load, nil)
            } else if let pattern = contents.pattern(for: name) {
                registration = pattern
                stake = try parties.map { parties throws(TrebuchetError) in
                    try shares.take(.actorsOnDemand, for: parties)
                }
            } else if name.isTooLong {
                throw ActorName.tooLong
            } else {
                return nil
            }
            let task = Task {
                await leaving?.value
                return try await TrebuchetActorSystem.living(on: reactor) {
                    try await self.make(name, registration, stake)
                }
            }
            contents.activating[name] = task
            return task
        }
    }

    private func make(_ name: ActorName, _ registration: Registration, _ stake: Stake?) async throws -> ActorRecord {
        do {
            let record = try await registration.make(name.text)
            return contents.withLock { contents in
                contents.activating[name] = nil
                // One that was exposed under this name meanwhile has been put there on purpose.
                if let exposed = contents.records[name] { return exposed }
                // It has come to its end already; who gets it asks for the next.
                guard !record.life.isGone else {
                    stake?.giveBack()
                    return record
                }
                record.stake = stake
                record.idle = registration.idle
                if registration.isPlaced { record.slot = ClusterSlot(of: record.name).number }
                contents.records[name] = record
                return record
            }
        } catch {
            contents.withLock { $0.activating[name] = nil }
            throw error
        }
    }

    // MARK: Letting go

    /// An actor is being let go; `work` is what is to be done before another of its name may be made.
    func letGo(_ record: ActorRecord, _ work: @escaping @Sendable () async -> Void) {
        let name = ActorName(record.name)
        contents.withLock { contents in
            if contents.records[name] === record { contents.records[name] = nil }
            let before = contents.leaving[name]?.task
            contents.leavings += 1
            let number = contents.leavings
            let task = Task {
                await before?.value
                await work()
                self.contents.withLock { if $0.leaving[name]?.number == number { $0.leaving[name] = nil } }
            }
            contents.leaving[name] = (number, task)
        }
    }

    /// Actors that were made on demand, and what is under way of letting others go.
    var onDemand: (records: [ActorRecord], leaving: [Task<Void, Never>]) {
        contents.withLock { contents in
            (contents.records.values.filter { $0.stake != nil }, contents.leaving.values.map(\.task))
        }
    }

    var count: Int { contents.withLock { $0.records.count } }
    /// Actors that are being made or loaded.
    var activatingCount: Int { contents.withLock { $0.activating.count } }
}

extension ActorDirectory {
    func clientActor(_ name: String) throws(TrebuchetError) -> any ClientActor { try HostingClient.reference(to: name) }
}
