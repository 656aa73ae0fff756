package import Distributed
internal import Networking
internal import Synchronization
package import TrebuchetActors

/// The actors that a server has exposed, by name, and the types whose actors it activates on demand.
package final class ActorDirectory: ActorHost, Sendable {
    /// Creates the record of an actor for a name.
    typealias Factory = @Sendable (String) async throws -> ActorRecord

    /// The type of an actor and the way to create it.
    struct Registration: Sendable {
        /// Tells registrations of one name apart.
        final class Token: Sendable {}

        let type: ActorType
        let make: Factory
        let token = Token()
        /// The policy for actors that are deactivated when idle; nil for others.
        var idle: IdlePolicy?
        /// Indicates whether it lives on one server of several, the owner of the partition of its name.
        var isClustered = false
    }

    private struct Pattern {
        let prefix: String
        let registration: Registration
    }

    private struct Contents {
        var records: [ActorName: ActorRecord] = [:]
        var patterns: [Pattern] = []
        var hasClustered = false
        /// Indicates whether actors of a pattern may be deactivated before their server shuts down.
        var mayDeactivate = false
        /// Actors that were exposed by name and must be loaded first.
        var loading: [ActorName: Registration] = [:]
        var activating: [ActorName: Task<ActorRecord, any Error>] = [:]
        /// Actors that are being deactivated: the next activation of the name waits for it.
        var deactivating: [ActorName: (number: Int, task: Task<Void, Never>)] = [:]
        /// The number of deactivations so far, which gives each a number.
        var deactivationCount = 0

        func pattern(for name: ActorName) -> Registration? {
            name.isTooLong ? nil : patterns.first { name.isBehind($0.prefix) }?.registration
        }
    }

    private let contents = Mutex(Contents())
    private let quotas: QuotaLedger
    private let router: (any RemoteRouter)?
    private let routes = Mutex<(@Sendable (String) -> (any RemoteServer)?)?>(nil)

    init(quotas: QuotaLedger, router: (any RemoteRouter)? = nil) { (self.quotas, self.router) = (quotas, router) }

    func insert(_ record: ActorRecord) {
        let name = ActorName(record.name)
        contents.withLock { contents in
            if contents.hasClustered, contents.pattern(for: name)?.isClustered == true { setPartition(of: record) }
            contents.records[name] = record
            contents.loading[name] = nil
        }
    }

    private func setPartition(of record: ActorRecord) {
        if let router { record.partition = router.partition(of: record.name) }
    }

    /// Registers an actor whose record is created by the first call, and again after a failure.
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
        removed?.releaseReservation()
    }

    package func record(_ name: ActorName) -> ActorRecord? { contents.withLock { $0.records[name] } }
    package func actor(_ name: ActorName) -> (any DistributedActor)? { record(name)?.actor }

    /// Returns whether the actor of this registration by name is still registered and has not been loaded yet.
    func isUnloaded(_ name: ActorName, _ registration: Registration) -> Bool {
        contents.withLock { $0.loading[name]?.token === registration.token && $0.records[name] == nil }
    }

    /// The activation in progress of a name; nil without one.
    package func activation(of name: ActorName) -> Task<ActorRecord, any Error>? {
        contents.withLock { $0.activating[name] }
    }

    package func mayDeactivate(_ name: ActorName) -> Bool {
        contents.withLock { contents in
            guard contents.mayDeactivate, contents.loading[name] == nil, let pattern = contents.pattern(for: name)
            else {
                return false
            }
            return pattern.isClustered || pattern.idle != nil
        }
    }

    package func route(to name: String) -> (any RemoteServer)? { routes.withLock { $0 }?(name) }

    /// Sets the resolver of remote servers, before the server is returned to the program; nil when the server shuts down.
    func setResolver(_ route: (@Sendable (String) -> (any RemoteServer)?)?) { routes.withLock { $0 = route } }

    /// Returns the type of the actor with this name, activated or not; nil for an unknown name. Activates nothing.
    func type(of name: ActorName) -> ActorType? {
        contents.withLock { contents in
            contents.records[name]?.type ?? contents.loading[name]?.type ?? contents.pattern(for: name)?.type
        }
    }

    /// Returns the type of an actor that lives on one server of several; nil for others.
    func clusteredType(of name: ActorName) -> ActorType? {
        contents.withLock { contents in
            guard contents.hasClustered, contents.loading[name] == nil, let pattern = contents.pattern(for: name),
                pattern.isClustered
            else { return nil }
            return pattern.type
        }
    }

    /// Returns the active actors of a partition, and the activations and deactivations in progress.
    package func clusteredActors(
        in partition: Int
    ) -> (records: [ActorRecord], making: [Task<ActorRecord, any Error>], deactivating: [Task<Void, Never>]) {
        contents.withLock { contents in
            guard let router, contents.hasClustered else { return ([], [], []) }
            return (
                contents.records.values.filter { $0.partition == partition },
                contents.activating.filter { router.partition(of: $0.key.text) == partition }.map(\.value),
                contents.deactivating.filter { router.partition(of: $0.key.text) == partition }.map(\.value.task)
            )
        }
    }

    /// The types of exposed actors by name, and of virtual actors by the pattern of their names. Activated virtual actors are not
    /// included.
    var exposedTypes: [(name: String, type: ActorType)] {
        contents.withLock { contents in
            contents.records.values.filter { $0.reservation == nil }.map { ($0.name, $0.type) }
                + contents.loading.map { ($0.key.text, $0.value.type) }
                + contents.patterns.map { ($0.prefix + "*", $0.registration.type) }
        }
    }

    /// All actors: the active ones, those that must be loaded first, and the patterns of virtual actors.
    var all: (ready: [ActorRecord], unloaded: [(String, ActorType)], patterns: [(prefix: String, type: ActorType)]) {
        contents.withLock { contents in
            (
                Array(contents.records.values),
                contents.loading.filter { contents.records[$0.key] == nil }.map { ($0.key.text, $0.value.type) },
                contents.patterns.map { ($0.prefix, $0.registration.type) }
            )
        }
    }

    /// Registers virtual actors for names that begin with `prefix`. The longest prefix wins.
    func insert(prefix: String, _ registration: Registration) {
        contents.withLock { contents in
            contents.patterns.removeAll { $0.prefix.utf8.elementsEqual(prefix.utf8) }
            contents.patterns.append(Pattern(prefix: prefix, registration: registration))
            contents.hasClustered = contents.patterns.contains { $0.registration.isClustered }
            contents.mayDeactivate = contents.hasClustered || contents.patterns.contains { $0.registration.idle != nil }
            contents.patterns.sort { $0.prefix.utf8.count > $1.prefix.utf8.count }
        }
    }

    /// Returns the task that activates the actor of this name, one for all concurrent callers; nil for an unknown name.
    ///
    /// - Parameters:
    ///   - scopes: The quota scopes of the activation.
    ///   - reactor: The reactor of the first caller, on which the actor lives if it is created.
    func activate(
        _ name: ActorName, for scopes: QuotaScopes?, on reactor: Reactor? = nil
    ) throws(TrebuchetError) -> Task<ActorRecord, any Error>? {
        let origin = scopes.flatMap { ActivationOrigin($0) }
        // Reported after the lock is released, since event handlers receive it.
        var exceeded: QuotaExceeded?
        let task = try contents.withLock { contents throws(TrebuchetError) -> Task<ActorRecord, any Error>? in
            if let running = contents.activating[name] { return running }
            // Another reactor may have requested it since the caller's lookup, and the activation is complete.
            if let record = contents.records[name] { return Task { record } }
            let deactivating = contents.deactivating[name]?.task
            let (registration, reservation): (Registration, QuotaReservation?)
            if let load = contents.loading[name] {
                (registration, reservation) = (load, nil)
            } else if let pattern = contents.pattern(for: name) {
                registration = pattern
                do throws(QuotaExceeded) {
                    reservation = try scopes.map { scopes throws(QuotaExceeded) in
                        let own = scopes.connection.map { QuotaScope.connection($0) }
                        return try QuotaReservation(
                            .actorsOnDemand, in: quotas.account(for: scopes, own: own))
                    }
                } catch {
                    exceeded = error
                    return nil
                }
            } else if name.isTooLong {
                throw ActorName.tooLong
            } else {
                return nil
            }
            let task = Task {
                await deactivating?.value
                return try await TrebuchetActorSystem.withLoop(reactor) {
                    try await ActivationOrigin.$current.withValue(origin) {
                        try await self.make(name, registration, reservation)
                    }
                }
            }
            contents.activating[name] = task
            return task
        }
        if let exceeded { throw quotas.refusal(exceeded) }
        return task
    }

    private func make(_ name: ActorName, _ registration: Registration, _ reservation: QuotaReservation?) async throws
        -> ActorRecord
    {
        do {
            let record = try await registration.make(name.text)
            return contents.withLock { contents in
                contents.activating[name] = nil
                // An actor that was exposed under this name meanwhile was exposed deliberately.
                if let exposed = contents.records[name] { return exposed }
                // It has ended already; its callers request the next one.
                guard !record.actorInstance.isDeactivated else {
                    reservation?.release()
                    return record
                }
                record.reservation = reservation
                record.idle = registration.idle
                if registration.isClustered { setPartition(of: record) }
                contents.records[name] = record
                return record
            }
        } catch {
            contents.withLock { $0.activating[name] = nil }
            throw error
        }
    }

    // MARK: Deactivation

    /// Removes an actor. `work` is executed before the next activation of its name.
    package func deactivateActor(_ record: ActorRecord, _ work: @escaping @Sendable () async -> Void) {
        let name = ActorName(record.name)
        contents.withLock { contents in
            if contents.records[name] === record { contents.records[name] = nil }
            let before = contents.deactivating[name]?.task
            contents.deactivationCount += 1
            let number = contents.deactivationCount
            let task = Task {
                await before?.value
                await work()
                self.contents.withLock { if $0.deactivating[name]?.number == number { $0.deactivating[name] = nil } }
            }
            contents.deactivating[name] = (number, task)
        }
    }

    /// The activated virtual actors, and the deactivations in progress.
    var onDemand: (records: [ActorRecord], deactivating: [Task<Void, Never>]) {
        contents.withLock { contents in
            (contents.records.values.filter { $0.reservation != nil }, contents.deactivating.values.map(\.task))
        }
    }

    var count: Int { contents.withLock { $0.records.count } }
    /// The number of activations in progress.
    var activatingCount: Int { contents.withLock { $0.activating.count } }
}

extension ActorDirectory {
    package func clientActor(_ name: String) throws(TrebuchetError) -> any ClientActor {
        try ClientActorHost.reference(to: name)
    }
}
