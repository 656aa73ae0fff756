internal import Platform
internal import Distributed
internal import Synchronization
internal import Trebuchet

/// A part of a service, as a room is: an actor that is made when it is first called, and goes when nobody uses it.
protocol ServicePart: DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// Whether it may go.
    var isUnused: Bool { get }
    /// Whether it has gone, or stays for somebody who has come.
    func didDecide(_ goes: Bool)
}

/// The parts of a service, each under `<service>/<name>`.
final class ServiceParts<Part: ServicePart>: Sendable {
    private struct Weak {
        weak var part: Part?
    }

    private let service: String
    private let limit: Int
    private weak let server: TrebuchetServer?
    /// Those that there are, and those that are being made, which are nobody yet.
    private let parts = Mutex<[ByteText: Weak]>([:])

    /// - Parameter limit: of parts at once.
    init(of service: String, at server: TrebuchetServer, limit: Int) {
        self.service = service
        self.server = server
        self.limit = limit
    }

    var count: Int { parts.withLock { $0.count } }

    /// Those that there are, by their names.
    var all: [(name: String, part: Part)] {
        parts.withLock { $0.compactMap { name, weak in weak.part.map { (name.text, $0) } } }
    }

    subscript(name: String) -> Part? { parts.withLock { $0[ByteText(name)]?.part } }

    /// `chat-lobby` of `rooms/chat-lobby`.
    func name(ofActor name: String) -> String { name.dropFirst(bytes: service.utf8.count + 1) }

    /// Takes a place for a part that is to be made; false when there are as many as there may be.
    func reserve(_ name: String) -> Bool {
        parts.withLock { parts in
            guard parts.count < limit else { return false }
            parts[ByteText(name)] = Weak()
            return true
        }
    }

    /// Gives the place back of one that could not be made.
    func giveBack(_ name: String) { _ = parts.withLock { $0.removeValue(forKey: ByteText(name)) } }

    /// Notes a part that was made.
    ///
    /// - Parameter look: called once after a time: whoever had it made may not have called it.
    func add(
        _ part: Part, as name: String, after time: Duration, _ look: @escaping @Sendable (isolated Part) -> Void
    ) {
        parts.withLock { $0[ByteText(name)]?.part = part }
        Task { [weak part] in
            try? await Task.sleep(for: time)
            await part?.whenLocal(look)
        }
    }

    /// Runs `body` in each, in its own time.
    func each(_ body: @escaping @Sendable (isolated Part) -> Void) {
        for (_, part) in all { Task { await part.whenLocal(body) } }
    }

    /// Lets a part go that nobody uses, unless somebody comes meanwhile.
    ///
    /// - Parameter gone: called when it goes.
    func letGo(_ part: Part, _ name: String, _ gone: @escaping @Sendable () -> Void = {}) async {
        await server?.letGo(part, named: "\(service)/\(name)", if: { $0.isUnused }) { part, goes in
            part.didDecide(goes)
            guard goes else { return }
            gone()
            self.giveBack(name)
        }
    }
}
