import Synchronization
import TestSupport
import Trebuchet

/// An actor whose calls are intercepted: it records what runs.
@Trebuchet
distributed actor InterceptedActor {
    struct Full: Error, Codable, Equatable {
        var limit: Int
    }

    @StreamedState var count: Int = 0
    private let journal: Journal

    init(journal: Journal, actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.actorSystem = actorSystem
    }

    distributed func add(_ number: Int) -> Int {
        journal.record("add \(number)")
        count += number
        return count
    }
    distributed func addLater(_ number: Int) async -> Int {
        await Task.yield()
        return add(number)
    }
    @Idempotent
    distributed func addOnce(_ number: Int) -> Int { add(number) }
    @Redacted
    distributed func addSecretly(_ number: Int) -> Int { add(number) }
    distributed func fail() throws(Full) { throw Full(limit: 3) }
    distributed func wait() async throws {
        journal.record("waits")
        let (stream, continuation) = AsyncStream<Never>.makeStream()
        for await _ in stream {}
        continuation.finish()
        try Task.checkCancellation()
    }

    private var requestID: String { CallMetadata.current["request-id"] ?? "none" }
    distributed func idNow() -> String { requestID }
    distributed func idLater() async -> String {
        await Task.yield()
        return requestID
    }
    @Idempotent
    distributed func idOnce() -> String { requestID }
    distributed func header(_ name: String) -> String? { Caller.current?.connection.headers[name] }
}

/// Records the calls and streams that it intercepts.
struct RecordingInterceptor: ServerInterceptor {
    let name: String
    let journal: Journal
    var readsArguments = false

    func call(_ request: ServerRequest, next: ServerInterceptor.Next) async throws -> InterceptedResult {
        var text = "\(name): \(request.target)"
        if request.isRepeat { text += " repeated" }
        switch request.arguments {
        case .json(let json)?: text += " \(String(decoding: json, as: UTF8.self))"
        case .redacted?: text += " redacted"
        case nil: break
        }
        journal.record(text)
        do {
            let result = try await next(request)
            journal.record("\(name): returned")
            return result
        } catch {
            journal.record("\(name): \((error as? TrebuchetError).map { "\($0.code)" } ?? "\(error)")")
            throw error
        }
    }

    func startStream(_ request: ServerRequest) async throws {
        journal.record("\(name): \(request.target)\(request.isResumed ? " resumed" : "")")
    }
}

/// Accepts or refuses by a closure.
struct Admission: AdmissionInterceptor {
    let body: @Sendable (ServerRequest) throws -> Void

    init(_ body: @escaping @Sendable (ServerRequest) throws -> Void) { self.body = body }

    func admit(_ request: ServerRequest) throws { try body(request) }
}

/// Intercepts calls by a closure.
struct Around: ServerInterceptor {
    let body: @Sendable (ServerRequest, ServerInterceptor.Next) async throws -> InterceptedResult

    init(_ body: @escaping @Sendable (ServerRequest, ServerInterceptor.Next) async throws -> InterceptedResult) {
        self.body = body
    }

    func call(_ request: ServerRequest, next: ServerInterceptor.Next) async throws -> InterceptedResult {
        try await body(request, next)
    }
}
