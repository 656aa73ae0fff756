import Dispatch
import Foundation
import Synchronization
import TestSupport
import Testing
import Trebuchet

// The audit log in a file of Docs/Guides/Interceptors.md.

final class AuditFile: ServerInterceptor {
    struct Line: Codable {
        var time: String
        var principal: String?
        var actor: String
        var target: String
        var outcome: String
        var milliseconds: Double?
    }

    private struct State {
        var unwritten: [UInt8] = []
        var callsInFlight = 0
        var isWriteQueued = false
        var isClosed = false
        var idle: CheckedContinuation<Void, Never>?
    }

    private let file: FileHandle
    private let limit: Int
    private let queue = DispatchQueue(label: "audit file")
    private let state = Mutex(State())

    init(path: String, limit: Int = 1 << 20) throws {
        let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        self.limit = limit
    }

    func call(_ request: ServerRequest, next: ServerInterceptor.Next) async throws -> InterceptedResult {
        try admit(calls: 1)
        let (time, began) = (Date.now, ContinuousClock.now)
        var outcome = "ok"
        defer { append(request, time, outcome, after: ContinuousClock.now - began) }
        do {
            return try await next(request)
        } catch {
            outcome = Self.code(of: error)
            throw error
        }
    }

    func startStream(_ request: ServerRequest) async throws {
        try admit(calls: 0)
        append(request, .now, "requested", after: nil)
    }

    /// Refuses a call before its method runs if there is no room for its line.
    private func admit(calls: Int) throws {
        let isAdmitted = state.withLock { state in
            guard !state.isClosed, state.unwritten.count < limit else { return false }
            state.callsInFlight += calls
            return true
        }
        guard isAdmitted else {
            queueWrite()
            throw TrebuchetError(.unavailable, "the audit log accepts no lines now", retryAfter: .seconds(1))
        }
    }

    private static func code(of error: any Error) -> String {
        if error is CancellationError { return TrebuchetError.Code.cancelled.description }
        return (error as? TrebuchetError)?.code.description ?? "application"
    }

    private func append(_ request: ServerRequest, _ time: Date, _ outcome: String, after duration: Duration?) {
        let line = Line(
            time: time.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)),
            principal: request.principal?.id, actor: request.actor, target: request.target, outcome: outcome,
            milliseconds: duration.map { $0 / .milliseconds(1) })
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let json = (try? encoder.encode(line)) ?? Data()
        let idle = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.unwritten += json + [UInt8(ascii: "\n")]
            if duration != nil { state.callsInFlight -= 1 }
            guard state.callsInFlight == 0 else { return nil }
            defer { state.idle = nil }
            return state.idle
        }
        queueWrite()
        idle?.resume()
    }

    private func queueWrite() {
        let isQueued = state.withLock { state in
            defer { state.isWriteQueued = true }
            return state.isWriteQueued
        }
        guard !isQueued else { return }
        queue.async {
            self.state.withLock { $0.isWriteQueued = false }
            try? self.writeLines()
        }
    }

    /// Writes the lines on the queue. Lines that the file does not accept stay, and the next write begins with them.
    private func writeLines() throws {
        while true {
            let bytes = state.withLock { $0.unwritten }
            guard !bytes.isEmpty else { return }
            let count = write(file.fileDescriptor, bytes, bytes.count)
            guard count >= 0 || errno == EINTR else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
            state.withLock { $0.unwritten.removeFirst(max(count, 0)) }
        }
    }

    /// Waits for calls in flight, writes all lines to the disk and closes the file. Call it once, after the server has shut down.
    func close() async throws {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                state.isClosed = true
                if state.callsInFlight > 0 { state.idle = continuation }
                return state.callsInFlight == 0
            }
            if isIdle { continuation.resume() }
        }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            queue.async {
                continuation.resume(
                    with: Result {
                        try self.writeLines()
                        try self.file.synchronize()
                        try self.file.close()
                    })
            }
        }
    }
}

func runAudited(_ keys: [String: Principal], file path: String) async throws {
    let audit = try AuditFile(path: path)
    var access = AccessPolicy(authenticate: AccessPolicy.apiKeys(keys))
    access.interceptors = [audit]
    let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 8080), access: access)
    await server.expose(Guestbook(actorSystem: server.actorSystem), as: "guestbook")
    try await server.run()
    try await audit.close()
}

@Trebuchet
distributed actor AuditedTill {
    let didStart: @Sendable () -> Void

    init(didStart: @escaping @Sendable () -> Void, actorSystem: TrebuchetActorSystem) {
        self.didStart = didStart
        self.actorSystem = actorSystem
    }

    distributed func pay(_ amount: Int) -> Int { amount }

    distributed func reject() throws { throw CocoaError(.featureUnsupported) }

    /// Runs until its task is cancelled.
    distributed func wait() async throws {
        didStart()
        let (stream, continuation) = AsyncStream<Never>.makeStream()
        for await _ in stream {}
        continuation.finish()
        try Task.checkCancellation()
    }
}

/// The audit file of the guide.
@Suite(.timeLimit(.minutes(5))) struct AuditFileExample {
    /// A server with the till, and a client of each of two principals.
    private struct Scene {
        let server: TrebuchetServer
        let clients: [TrebuchetClient]
        let tills: [AuditedTill]

        init(_ audit: AuditFile, didStart: @escaping @Sendable () -> Void = {}) async throws {
            let keys = ["k-ada": Principal(id: "ada"), "k-bob": Principal(id: "bob \"\n\"")]
            var access = AccessPolicy(authenticate: AccessPolicy.apiKeys(keys))
            access.interceptors = [audit]
            server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2, access: access)
            await server.expose(AuditedTill(didStart: didStart, actorSystem: server.actorSystem), as: "tills/1")
            await server.expose(Guestbook(actorSystem: server.actorSystem), as: "guestbook")
            let port = try await server.start().port
            var clients: [TrebuchetClient] = []
            for key in ["k-ada", "k-bob"] {
                var options = TrebuchetClient.Options()
                options.token = { key }
                let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port), options: options)
                try await client.connect()
                clients.append(client)
            }
            self.clients = clients
            tills = try clients.map { try $0.resolve(AuditedTill.self, id: "tills/1") }
        }

        func closeClients() async { for client in clients { await client.close() } }
    }

    private static func lines(_ text: some StringProtocol) throws -> [AuditFile.Line] {
        try text.split(separator: "\n").map { try JSONDecoder().decode(AuditFile.Line.self, from: Data($0.utf8)) }
    }

    private static func withFolder(_ body: (_ path: String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder.appending(path: "audit.jsonl").path)
    }

    @Test("each call and stream has a line, and lines of calls that end with the server are written")
    func complete() async throws {
        try await Self.withFolder { (path) async throws in
            try "{}\n".write(toFile: path, atomically: false, encoding: .utf8)
            let audit = try AuditFile(path: path)
            let (started, start) = AsyncStream.makeStream(of: Void.self)
            let scene = try await Scene(audit) { start.yield() }
            let (server, tills) = (scene.server, scene.tills)
            await withTaskGroup(of: Void.self) { group in
                for till in tills { for number in 0..<100 { group.addTask { _ = try? await till.pay(number) } } }
            }
            await #expect(throws: (any Error).self) { try await tills[0].reject() }
            let guestbook = try scene.clients[0].resolve(Guestbook.self, id: "guestbook")
            for await _ in await guestbook.observeEntries() { break }
            let waiting = Task { _ = try? await tills[1].wait() }
            for await _ in started { break }
            await server.shutdown(drain: .zero)
            try await audit.close()
            await scene.closeClients()
            await waiting.value

            let text = try String(contentsOfFile: path, encoding: .utf8)
            #expect(text.hasPrefix("{}\n") && text.hasSuffix("\n"), "the file is continued")
            let lines = try Self.lines(text.dropFirst(3))
            for principal in ["ada", "bob \"\n\""] {
                let paid = lines.filter { $0.principal == principal && $0.target == "pay(_:)" }
                #expect(paid.count == 100 && paid.allSatisfy { $0.outcome == "ok" })
            }
            #expect(lines.allSatisfy { $0.time.hasSuffix("Z") && ($0.milliseconds ?? 0) >= 0 })
            let others = lines.filter { $0.target != "pay(_:)" }
            #expect(others.map(\.target).sorted() == ["observeEntries", "reject()", "wait()"])
            #expect(others.first { $0.target == "reject()" }?.outcome == "application")
            #expect(others.first { $0.target == "reject()" }?.actor == "tills/1")
            #expect(others.first { $0.target == "wait()" }?.outcome != "ok")
            let stream = others.first { $0.target == "observeEntries" }
            #expect(stream?.outcome == "requested" && stream?.milliseconds == nil)
        }
    }

    @Test("while the file does not accept lines, calls are answered up to the limit, then refused before they run")
    func blocked() async throws {
        try await Self.withFolder { (path) async throws in
            // A pipe blocks the writer as a slow disk does, for as long as nothing reads from it.
            #expect(mkfifo(path, 0o600) == 0)
            let reader = open(path, O_RDONLY | O_NONBLOCK)
            let audit = try AuditFile(path: path, limit: 4096)
            let scene = try await Scene(audit)
            let till = scene.tills[0]
            var answered = 0
            var refusal: TrebuchetError?
            while refusal == nil, answered < 100_000 {
                do {
                    answered += try await till.pay(1)
                } catch {
                    refusal = error as? TrebuchetError ?? TrebuchetError(.internal, "\(error)")
                }
            }
            #expect(answered > 10)
            #expect(refusal?.code == .unavailable && refusal?.retryAfter == .seconds(1))

            var text: [UInt8] = []
            func readLines() {
                var bytes = [UInt8](repeating: 0, count: 65_536)
                let count = read(reader, &bytes, bytes.count)
                if count > 0 { text += bytes[..<count] }
            }
            #expect(
                await eventually {
                    readLines()
                    guard let paid = try? await till.pay(1) else { return false }
                    answered += paid
                    return true
                })
            await scene.server.shutdown(drain: .zero)
            let closing = Task { try? await audit.close() }
            #expect(
                await eventually {
                    readLines()
                    return text.count { $0 == UInt8(ascii: "\n") } >= answered
                })
            _ = await closing.value
            await scene.closeClients()
            let lines = try Self.lines(String(decoding: text, as: UTF8.self))
            #expect(lines.count == answered && lines.allSatisfy { $0.outcome == "ok" })
            close(reader)
        }
    }
}
