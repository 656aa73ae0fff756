import Testing

@testable import Trebuchet
@testable import TrebuchetActors

/// Persisted responses count for their caller until they are removed.
@Suite struct PersistedResponseTests {
    private let quotas: QuotaLedger

    init() {
        var limits = ServerLimits()
        limits.idempotency.totalBytes = 1_000
        limits.idempotency.bytesPerPrincipal = 600
        limits.idempotency.bytesPerConnection = 400
        quotas = QuotaLedger(limits: limits)
    }

    private func call(_ number: UInt64, of connection: UInt64, _ principal: String) -> IdempotencyRecord {
        let account = quotas.account(
            for: QuotaScopes(connection: nil, principal: principal, host: nil), own: .connection(connection))
        return IdempotencyRecord(
            IdempotencyNamespace.key("c\(connection)", number, of: "a"), digest: 1, principal: principal,
            in: PersistedResponseQuota(account, of: principal))
    }

    /// True if the whole response is persisted; otherwise only its existence is.
    private func keeps(_ call: IdempotencyRecord, _ count: Int) throws -> Bool {
        guard case .put(let bytes) = call.responseWrite(.success([UInt8](repeating: 0x31, count: count))).operation
        else {
            return false
        }
        let stored = try PersistedIdempotencyRecord(bytes)
        #expect(stored.principal == "ada" || stored.principal == "bob")
        switch stored.answer {
        case .success(let answer): return answer.count == count
        case .failure(let error): #expect(error.code == .unknownOutcome)
        case nil: Issue.record("the record does not say that the call was answered")
        }
        return false
    }

    @Test("connections, principals and the server have limits, and removal releases the quota")
    func limits() throws {
        var retained: [IdempotencyRecord] = []
        func keeps(_ call: IdempotencyRecord, _ count: Int) throws -> Bool {
            retained.append(call)
            return try self.keeps(call, count)
        }
        #expect(try keeps(call(1, of: 1, "ada"), 300))
        #expect(try !keeps(call(2, of: 1, "ada"), 300), "400 of a connection")
        #expect(try keeps(call(1, of: 2, "ada"), 300))
        #expect(try !keeps(call(1, of: 3, "ada"), 1), "600 of a principal")
        #expect(try keeps(call(1, of: 4, "bob"), 400))
        #expect(try !keeps(call(1, of: 5, "bob"), 1), "1,000 of all")
        #expect(quotas.count(.persistedResponseBytes) == 1_000)
        retained.removeFirst()
        #expect(try keeps(call(3, of: 1, "ada"), 300))
        retained = []
        #expect(quotas.isEmpty && quotas.scopeCount == 0)
    }
}
