internal import Synchronization

/// Where accounts and sessions are kept: bytes by names.
///
/// `write` returns when all of it is kept, or throws and has kept none.
package protocol AccountStore: Sendable {
    func value(_ name: String) async throws -> [UInt8]?
    /// Names that begin with `prefix`, with their values, in the order of their bytes and behind `after`; fewer than `limit`
    /// only when there are no more.
    func list(prefix: String, after: String?, limit: Int) async throws -> [(name: String, value: [UInt8])]
    /// Nil deletes.
    func write(_ values: [String: [UInt8]?]) async throws
}

/// Accounts that last as long as their process.
package final class MemoryAccountStore: AccountStore {
    private let values = Mutex<[String: [UInt8]]>([:])

    package init() {}

    package func value(_ name: String) async throws -> [UInt8]? { values.withLock { $0[name] } }

    package func list(prefix: String, after: String?, limit: Int) async throws -> [(name: String, value: [UInt8])] {
        let found = values.withLock { values in
            values.filter { name, _ in name.hasPrefix(prefix) && after.map { $0 < name } ?? true }
        }
        return found.sorted { $0.key < $1.key }.prefix(limit).map { ($0.key, $0.value) }
    }

    package func write(_ changes: [String: [UInt8]?]) async throws {
        values.withLock { values in
            for (name, value) in changes { values[name] = value }
        }
    }
}
