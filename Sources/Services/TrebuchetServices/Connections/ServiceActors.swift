internal import Platform
internal import Distributed
internal import Synchronization
internal import Trebuchet

/// An actor of a service, such as a room. It is activated by its first call and deactivated when it is unused.
protocol ServiceActor: DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// True when the actor may be deactivated.
    var isUnused: Bool { get }
    /// Reports the decision about a deactivation.
    ///
    /// - Parameter isDeactivated: true when the actor was deactivated; false when a caller has started to use it again.
    func deactivationDidFinish(_ isDeactivated: Bool)
}

/// The actors of a service, each under `<service>/<name>`.
final class ServiceActors<Part: ServiceActor>: Sendable {
    private struct Weak {
        weak var actor: Part?
    }

    private let service: String
    private let limit: Int
    private weak let server: TrebuchetServer?
    /// Active actors, and reserved names (with a nil reference) of actors that are being created.
    private let actors = Mutex<[ByteText: Weak]>([:])

    /// - Parameter limit: the maximum number of actors at once.
    init(of service: String, at server: TrebuchetServer, limit: Int) {
        self.service = service
        self.server = server
        self.limit = limit
    }

    var count: Int { actors.withLock { $0.count } }

    /// All active actors with their names.
    var all: [(name: String, part: Part)] {
        actors.withLock { $0.compactMap { name, weak in weak.actor.map { (name.text, $0) } } }
    }

    subscript(name: String) -> Part? { actors.withLock { $0[ByteText(name)]?.actor } }

    /// Returns the name within the service: `chat-lobby` for `rooms/chat-lobby`.
    func name(ofActor name: String) -> String { name.dropFirst(bytes: service.utf8.count + 1) }

    /// Reserves a name for an actor that is to be created; returns false at the limit.
    func reserve(_ name: String) -> Bool {
        actors.withLock { parts in
            guard parts.count < limit else { return false }
            parts[ByteText(name)] = Weak()
            return true
        }
    }

    /// Returns whether the name refers to this actor: the name of an ended actor may have a successor.
    func isCurrent(_ part: Part, _ name: String) -> Bool { self[name] === part }

    /// Releases the name of an ended actor, unless it has a successor.
    func releaseName(_ name: String, of part: Part) {
        actors.withLock { parts in
            if parts[ByteText(name)]?.actor === part { parts[ByteText(name)] = nil }
        }
    }

    /// Releases the reservation of an actor whose creation or activation failed, unless its name has an actor again.
    func releaseUnusedName(_ name: String) {
        // Returned, so that a last reference is released without the lock: its deinitializer takes the lock again.
        _ = actors.withLock { parts in
            let part = parts[ByteText(name)]?.actor
            if part == nil { parts[ByteText(name)] = nil }
            return part
        }
    }

    /// Registers a created actor under its reserved name.
    ///
    /// - Parameter check: called once after `time`, because the caller that caused the activation may never call the actor.
    func register(
        _ part: Part, as name: String, after time: Duration, _ check: @escaping @Sendable (isolated Part) -> Void
    ) {
        // Even without the reservation, which the end of an earlier actor of the name may have released.
        actors.withLock { $0[ByteText(name)] = Weak(actor: part) }
        Task { [weak part] in
            try? await Task.sleep(for: time)
            await part?.whenLocal(check)
        }
    }

    /// Runs `body` on each actor, as a separate task.
    func each(_ body: @escaping @Sendable (isolated Part) -> Void) {
        for (_, part) in all { Task { await part.whenLocal(body) } }
    }

    /// Deactivates an unused actor, unless a caller starts to use it meanwhile.
    ///
    /// - Parameter onDeactivation: called when the actor is deactivated.
    func deactivateActor(_ part: Part, _ name: String, _ onDeactivation: @escaping @Sendable () -> Void = {}) async {
        await server?.deactivateActor(part, named: "\(service)/\(name)", if: { $0.isUnused }) { part, isDeactivated in
            part.deactivationDidFinish(isDeactivated)
            guard isDeactivated else { return }
            onDeactivation()
            self.releaseName(name, of: part)
        }
    }
}
