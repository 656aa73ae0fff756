package import TrebuchetActors

/// The row of one actor, by which a server finds its due alarms.
package struct AlarmRow: Equatable, Sendable {
    /// The time at which the next alarm of the actor is due, in milliseconds since 1970.
    package let time: Int64
    /// The name of the actor.
    package let actor: String
    /// The name of the row. The byte order of names is that of times.
    package let name: String

    /// - Parameter name: by default the name in the store of one server.
    package init(time: Int64, actor: String, name: String? = nil) {
        (self.time, self.actor) = (time, actor)
        self.name = name ?? AlarmNamespace.rowName(time, actor)
    }
}

/// The result of a read of rows.
package struct AlarmRowPage: Sendable {
    /// The rows in the order of their names.
    package var rows: [AlarmRow]
    /// The name of the last row that was read, also if it is invalid; nil without rows.
    package var last: String?
    /// Indicates whether there are no rows behind these.
    package var isLast: Bool
    /// The error with which some other rows could not be read; nil if all were.
    package var failure: StateStoreError?

    package init(_ rows: [AlarmRow], last: String? = nil, isLast: Bool, failure: StateStoreError? = nil) {
        (self.rows, self.last, self.isLast, self.failure) = (rows, last ?? rows.last?.name, isLast, failure)
    }
}

/// The rows of a store.
package protocol AlarmRowSource: Sendable {
    /// Returns the first rows behind a name: those that are due, and the first other one.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of due rows.
    ///   - now: the time of day in milliseconds since 1970.
    func rows(after name: String?, limit: Int, at now: Int64) async throws(StateStoreError) -> AlarmRowPage

    /// Sets the closure that is called when earlier rows than the known ones may have appeared without a write of this server.
    func whenRowsAppear(_ body: @escaping @Sendable () -> Void)
}

/// The rows of a store that one server uses.
struct StoredAlarmRows: AlarmRowSource {
    let store: any StateStore

    func rows(after name: String?, limit: Int, at now: Int64) async throws(StateStoreError) -> AlarmRowPage {
        let page = try await store.list(AlarmNamespace.times, prefix: "", after: name, limit: limit)
        let rows = page.compactMap { entry in
            AlarmNamespace.parse(entry.key.name).map { AlarmRow(time: $0.time, actor: $0.actor) }
        }
        return AlarmRowPage(rows, last: page.last?.key.name, isLast: page.count < limit)
    }

    func whenRowsAppear(_ body: @escaping @Sendable () -> Void) {}
}
