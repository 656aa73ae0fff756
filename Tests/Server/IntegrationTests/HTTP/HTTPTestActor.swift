import TestSupport
import Trebuchet

/// The methods that HTTP calls of tests need.
@Trebuchet
distributed actor HTTPTestActor {
    /// An error that clients receive with its content.
    struct Refused: Error, Codable { var left: Int }
    /// An error that clients do not receive.
    struct Failed: Error { var secret = "s3cret" }

    @StreamedState var count: Int = 0
    @StreamedState var note: String = ""
    @StreamedEvents var rings: Int
    private let journal: Journal

    init(journal: Journal = Journal(), actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.actorSystem = actorSystem
    }

    distributed func add(_ amount: Int) -> Int {
        count += amount
        return count
    }
    distributed func reset() { count = 0 }
    distributed func ring(_ number: Int) { $rings.send(number) }
    /// Sets the note to a text of the given length that begins with the number.
    distributed func write(_ number: Int, _ length: Int) {
        note = "\(number)\n" + String(repeating: "x", count: length)
    }
    distributed func join(first: String, second: [String]) async -> String {
        await Task.yield()
        return first + second.joined()
    }
    distributed func text(of length: Int) -> String { String(repeating: "x", count: length) }
    distributed func caller() -> String? {
        Caller.current.flatMap { $0.isServer ? "the server" : $0.principal?.id }
    }
    distributed func fail(_ code: String) throws {
        let codes: [TrebuchetError.Code] = [
            .actorNotFound, .methodNotFound, .invalidArguments, .unauthenticated, .unauthorized, .rateLimited, .timeout,
            .cancelled, .unavailable, .unknownOutcome, .overflow, .application, .internal,
        ]
        if let found = codes.first(where: { $0.description == code }) { throw TrebuchetError(found, "on request") }
        if code == "refused" { throw Refused(left: 3) }
        throw Failed()
    }
    /// Returns at the test's signal.
    distributed func hold(_ name: String) async -> String {
        journal.record("\(name) began")
        // Also returns when its task is cancelled.
        await journal.wait(for: "\(name) go")
        journal.record("\(name) \(Task.isCancelled ? "was cancelled" : "went on")")
        return name
    }
    @Idempotent
    distributed func addOnce(_ amount: Int) -> Int {
        count += amount
        return count
    }
    @Idempotent
    distributed func holdOnce(_ name: String) async -> Int {
        journal.record("\(name) began")
        await journal.wait(for: "\(name) go")
        count += 1
        journal.record("\(name) \(Task.isCancelled ? "was cancelled" : "went on")")
        return count
    }
}

/// A counter whose state survives the server.
@Trebuchet
distributed actor HTTPTestCounter {
    @StreamedState(persisted: true) var count: Int = 0

    @Idempotent
    distributed func addOnce(_ amount: Int) -> Int {
        count += amount
        return count
    }
    distributed func value() -> Int { count }
}
