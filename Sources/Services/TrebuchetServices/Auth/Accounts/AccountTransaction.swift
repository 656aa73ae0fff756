internal import Synchronization
internal import Trebuchet

/// The reads and writes of one account operation. The write succeeds only when all read records are unchanged; otherwise the
/// whole operation is repeated.
final class AccountTransaction: Sendable {
    private struct State {
        var versions: [String: UInt64] = [:]
        var number: UInt64 = 0
        var isStale = false
    }

    private let records: AccountRecords
    private let state = Mutex(State())

    init(_ records: AccountRecords) { self.records = records }

    /// True when another operation has changed a read record.
    var isStale: Bool { state.withLock { $0.isStale } }

    /// The number of the newest change that the reads and writes include.
    var number: UInt64 { state.withLock { $0.number } }

    func account(_ id: String) async throws(AuthError) -> Account? {
        recordRead(try await records.versionedAccount(id))
    }

    func family(_ session: String) async throws(AuthError) -> RefreshTokenFamily? {
        recordRead(try await records.versionedFamily(session))
    }

    func owner(ofAddress address: String) async throws(AuthError) -> String? {
        recordRead(try await records.versionedOwner(ofAddress: address))
    }

    func owner(ofIdentity name: String) async throws(AuthError) -> String? {
        recordRead(try await records.versionedOwner(ofIdentity: name))
    }

    private func recordRead<Record>(_ read: AccountRecords.Versioned<Record>) -> Record? {
        state.withLock { state in
            // The first version counts, because later decisions may depend on it.
            if state.versions[read.name] == nil { state.versions[read.name] = read.version }
            state.number = max(state.number, read.version)
        }
        return read.record
    }

    /// Writes the changes. It must be called once, at the end: nothing after it may fail.
    func write(_ changes: AccountRecords.Changes) async throws(AuthError) {
        let versions = state.withLock { $0.versions }
        guard let number = try await records.write(changes, expecting: versions) else {
            state.withLock { $0.isStale = true }
            throw .unavailable
        }
        state.withLock { $0.number = number }
    }
}
