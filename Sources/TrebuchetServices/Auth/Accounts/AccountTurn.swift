internal import Synchronization
internal import Trebuchet

/// What one change of accounts reads and writes. It is written only while all that it was made of is as it was read: where somebody else
/// was faster the whole turn is taken again.
final class AccountTurn: Sendable {
    private struct State {
        var versions: [String: UInt64] = [:]
        var number: UInt64 = 0
        var isStale = false
    }

    private let records: AccountRecords
    private let state = Mutex(State())

    init(_ records: AccountRecords) { self.records = records }

    /// Whether somebody else has changed what was read.
    var isStale: Bool { state.withLock { $0.isStale } }

    /// What was read and written is as the change of this number has left it.
    var number: UInt64 { state.withLock { $0.number } }

    func account(_ id: String) async throws(AuthError) -> Account? { note(try await records.versionedAccount(id)) }

    func family(_ session: String) async throws(AuthError) -> TokenFamily? {
        note(try await records.versionedFamily(session))
    }

    func owner(ofAddress address: String) async throws(AuthError) -> String? {
        note(try await records.versionedOwner(ofAddress: address))
    }

    func owner(ofIdentity name: String) async throws(AuthError) -> String? {
        note(try await records.versionedOwner(ofIdentity: name))
    }

    private func note<Record>(_ read: AccountRecords.Versioned<Record>) -> Record? {
        state.withLock { state in
            // The first counts: what was decided since then may come of it.
            if state.versions[read.name] == nil { state.versions[read.name] = read.version }
            state.number = max(state.number, read.version)
        }
        return read.record
    }

    /// Once, at the end: what follows must not fail.
    func write(_ changes: AccountRecords.Changes) async throws(AuthError) {
        let versions = state.withLock { $0.versions }
        guard let number = try await records.write(changes, expecting: versions) else {
            state.withLock { $0.isStale = true }
            throw .unavailable
        }
        state.withLock { $0.number = number }
    }
}
