import Foundation
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

// The code of Docs/Guides/Interceptors.md.

struct AuditLog: ServerInterceptor {
    let log: @Sendable (String) -> Void

    func call(_ request: ServerRequest, next: ServerInterceptor.Next) async throws -> InterceptedResult {
        let began = ContinuousClock.now
        var outcome = "ok"
        defer {
            let id = String(reflecting: request.metadata["request-id"] ?? "")
            log("\(request.principal?.id ?? "-") \(request.target) \(outcome) \(id) \(ContinuousClock.now - began)")
        }
        do {
            return try await next(request)
        } catch {
            outcome = (error as? TrebuchetError)?.code.description ?? "application"
            throw error
        }
    }

    func startStream(_ request: ServerRequest) async throws {
        log("\(request.principal?.id ?? "-") \(request.target) requested")
    }
}

final class TrialLimit: AdmissionInterceptor {
    private struct Window {
        var end = ContinuousClock.now
        var calls: [String: Int] = [:]
    }

    private let window = Mutex(Window())

    func admit(_ request: ServerRequest) throws {
        guard request.kind == .call, let principal = request.principal, principal.roles.contains("trial") else {
            return
        }
        let count = window.withLock { window in
            let now = ContinuousClock.now
            if now >= window.end { window = Window(end: now + .seconds(1)) }
            window.calls[principal.id, default: 0] += 1
            return window.calls[principal.id, default: 0]
        }
        if count > 5 { throw TrebuchetError(.rateLimited, "a trial has 5 calls per second", retryAfter: .seconds(1)) }
    }
}

func auditedPolicy(_ keys: [String: Principal], log: @escaping @Sendable (String) -> Void) -> AccessPolicy {
    var access = AccessPolicy(authenticate: AccessPolicy.apiKeys(keys))
    access.interceptors = [AuditLog(log: log), TrialLimit()]
    return access
}

struct RequestIDs: ClientInterceptor {
    func call(_ request: ClientRequest, next: ClientInterceptor.Next) async throws -> InterceptedResult {
        var request = request
        request.metadata["request-id"] = UUID().uuidString
        return try await next(request)
    }

    func startStream(_ request: inout ClientRequest) throws(TrebuchetError) {
        request.metadata["request-id"] = UUID().uuidString
    }
}

/// The log and the request ids of the guide.
@Suite(.timeLimit(.minutes(5))) struct InterceptorExamples {
    @Test("the log has a line for each call, and a trial has a limit")
    func audited() async throws {
        let keys = ["k-ada": Principal(id: "ada"), "k-bob": Principal(id: "bob", roles: ["trial"])]
        let lines = Mutex<[String]>([])
        let access = auditedPolicy(keys) { line in lines.withLock { $0.append(line) } }
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), access: access)
        await server.expose(Guestbook(actorSystem: server.actorSystem), as: "guestbook")
        let port = try await server.start().port

        let ada = try await connect(port, "k-ada", [RequestIDs()])
        let guestbook = try ada.resolve(Guestbook.self, id: "guestbook")
        #expect(try await guestbook.sign("Hello") == 1)
        let id = "7f3a"
        let plain = try await connect(port, "k-ada", [])
        try await sign(try plain.resolve(Guestbook.self, id: "guestbook"), id)
        let own = lines.withLock { $0 }
        #expect(own.count == 2 && own.allSatisfy { $0.hasPrefix("ada sign(_:) ok \"") }, "\(own)")
        #expect(own.last?.hasPrefix("ada sign(_:) ok \"7f3a\" ") == true, "\(own)")

        let bob = try await connect(port, "k-bob", [])
        let other = try bob.resolve(Guestbook.self, id: "guestbook")
        let codes = await withTaskGroup(of: TrebuchetError.Code?.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    do {
                        _ = try await other.sign("x")
                        return nil
                    } catch {
                        return (error as? TrebuchetError)?.code ?? .internal
                    }
                }
            }
            var codes: [TrebuchetError.Code] = []
            for await case let code? in group { codes.append(code) }
            return codes
        }
        #expect(!codes.isEmpty && codes.allSatisfy { $0 == .rateLimited })
        for await _ in await guestbook.observeEntries() { break }
        #expect(lines.withLock { $0 }.contains("ada observeEntries requested"))
        for client in [ada, plain, bob] { await client.close() }
        await server.shutdown(drain: .zero)
    }

    private func sign(_ guestbook: Guestbook, _ id: String) async throws {
        _ = try await CallMetadata.with(["request-id": id]) {
            try await guestbook.sign("Hello")
        }
    }

    private func connect(
        _ port: Int, _ key: String, _ interceptors: [any ClientInterceptor]
    ) async throws -> TrebuchetClient {
        var options = TrebuchetClient.Options()
        options.token = { key }
        options.interceptors = interceptors
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port), options: options)
        try await client.connect()
        return client
    }
}
