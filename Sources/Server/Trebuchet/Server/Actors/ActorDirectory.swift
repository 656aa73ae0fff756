package import Distributed
internal import Bytes
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

    /// The newest attempt to activate an actor. It waits for earlier attempts, by other callers, to end.
    private struct Attempt {
        let number: Int
        /// The quota scopes of its caller; nil for the server itself.
        let scopes: QuotaScopes?
        let task: Task<ActorRecord, any Error>
    }

    private struct Contents {
        var records: [ActorName: ActorRecord] = [:]
        var patterns: [Pattern] = []
        var hasClustered = false
        /// Indicates whether actors of a pattern may be deactivated before their server shuts down.
        var mayDeactivate = false
        /// Actors that were exposed by name and must be loaded first.
        var loading: [ActorName: Registration] = [:]
        var activating: [ActorName: Attempt] = [:]
        /// The number of attempts so far, which gives each a number.
        var attemptCount = 0
        /// Actors that are being deactivated: the next activation of the name waits for it.
        var deactivating: [ActorName: (number: Int, task: Task<Void, Never>)] = [:]
        /// The number of deactivations so far, which gives each a number.
        var deactivationCount = 0

        func pattern(for name: ActorName) -> Registration? {
            name.isTooLong ? nil : patterns.first { name.isBehind($0.prefix) }?.registration
        }

        mutating func removeAttempt(_ name: ActorName, _ number: Int) {
            if activating[name]?.number == number { activating[name] = nil }
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
        contents.withLock { $0.activating[name]?.task }
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
                contents.activating.filter { router.partition(of: $0.key.text) == partition }.map(\.value.task),
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
    /// A failure is the failure of all callers that wait, except for a `CallerRefusal`: then the next caller activates the actor, in the
    /// order of arrival. So the task of a caller fails with a `CallerRefusal` only if that concerns the caller.
    ///
    /// - Parameters:
    ///   - scopes: The quota scopes of the caller; nil for the server itself.
    ///   - reactor: The reactor of the caller, on which the actor lives if it is created for it.
    /// - Throws: A `CallerRefusal`, or a `TrebuchetError` that concerns all callers.
    func activate(
        _ name: ActorName, for scopes: QuotaScopes?, on reactor: Reactor? = nil
    ) throws -> Task<ActorRecord, any Error>? {
        // A refusal is reported after the lock is released, since event handlers receive it.
        try refusing {
            try contents.withLock { contents throws -> Task<ActorRecord, any Error>? in
                let earlier = contents.activating[name]
                if let earlier, earlier.scopes == scopes { return earlier.task }
                var plan: Plan?
                if earlier == nil {
                    // Another reactor may have requested it since the caller's lookup, and the activation is complete.
                    if let record = contents.records[name] { return Task { record } }
                    plan = try makePlan(of: name, for: scopes, in: contents)
                    if plan == nil { return nil }
                }
                contents.attemptCount += 1
                let number = contents.attemptCount
                let task: Task<ActorRecord, any Error> = Task { [plan] in
                    defer { self.contents.withLock { $0.removeAttempt(name, number) } }
                    if let earlier, let record = try await Self.outcome(of: earlier, for: scopes) { return record }
                    return try await self.make(name, number, plan, for: scopes, on: reactor)
                }
                contents.activating[name] = Attempt(number: number, scopes: scopes, task: task)
                return task
            }
        }
    }

    /// The parts of an activation that are ready before it starts.
    private struct Plan {
        let registration: Registration
        /// nil for an exposed actor, and for the server itself.
        let reservation: QuotaReservation?
        /// The deactivation of the previous actor of the name.
        let deactivation: Task<Void, Never>?
    }

    /// Converts the error of a quota of `body`: a `CallerRefusal`, or at a limit of the server the error of all callers.
    private func refusing<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let exceeded as QuotaExceeded {
            let error = quotas.refusal(exceeded)
            if case .server = exceeded.scope { throw error }
            throw CallerRefusal(error, of: exceeded.scope)
        }
    }

    /// Returns nil for an unknown name. Throws `QuotaExceeded`.
    private func makePlan(of name: ActorName, for scopes: QuotaScopes?, in contents: Contents) throws -> Plan? {
        let deactivation = contents.deactivating[name]?.task
        if let load = contents.loading[name] {
            return Plan(registration: load, reservation: nil, deactivation: deactivation)
        }
        guard let pattern = contents.pattern(for: name) else {
            if name.isTooLong { throw ActorName.tooLong }
            return nil
        }
        let reservation = try scopes.map { scopes in
            let own = scopes.connection.map { QuotaScope.connection($0) }
            return try QuotaReservation(.actorsOnDemand, in: quotas.account(for: scopes, own: own))
        }
        return Plan(registration: pattern, reservation: reservation, deactivation: deactivation)
    }

    /// Returns the actor that an earlier attempt has activated; nil if it was refused for its caller only.
    private static func outcome(of earlier: Attempt, for scopes: QuotaScopes?) async throws -> ActorRecord? {
        switch await earlier.task.result {
        case .success(let record): return record
        case .failure(let error):
            guard let refusal = error as? CallerRefusal, !refusal.concerns(scopes) else { throw error }
            return nil
        }
    }

    private func makePlan(of name: ActorName, for scopes: QuotaScopes?) throws -> Plan? {
        try refusing { try contents.withLock { try makePlan(of: name, for: scopes, in: $0) } }
    }

    /// Activates the actor for one caller.
    ///
    /// - Parameter plan: nil if the caller has waited for the attempt of another one.
    private func make(
        _ name: ActorName, _ number: Int, _ plan: Plan?, for scopes: QuotaScopes?, on reactor: Reactor?
    ) async throws -> ActorRecord {
        guard let plan = try plan ?? makePlan(of: name, for: scopes) else { throw Self.notExposed(name) }
        await plan.deactivation?.value
        let origin = scopes.flatMap { ActivationOrigin($0) }
        let record: ActorRecord
        do {
            record = try await TrebuchetActorSystem.withLoop(reactor) {
                try await ActivationOrigin.$current.withValue(origin) { try await plan.registration.make(name.text) }
            }
        } catch {
            plan.reservation?.release()
            throw error
        }
        return contents.withLock { contents in
            contents.removeAttempt(name, number)
            // An actor that was exposed under this name meanwhile was exposed deliberately.
            if let exposed = contents.records[name] { return exposed }
            // It has ended already; its callers request the next one.
            guard !record.actorInstance.isDeactivated else {
                plan.reservation?.release()
                return record
            }
            record.reservation = plan.reservation
            record.idle = plan.registration.idle
            if plan.registration.isClustered { setPartition(of: record) }
            contents.records[name] = record
            return record
        }
    }

    /// Returns the error for a name without an actor.
    static func notExposed(_ name: ActorName) -> TrebuchetError {
        TrebuchetError(.actorNotFound, "no actor '\(name.text.prefix(bytes: ActorName.longest))' is exposed")
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
