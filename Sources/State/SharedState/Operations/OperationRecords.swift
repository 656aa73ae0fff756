/// The logs of a shared value's operations, while there are calls. All wrappers of the value share one table, which
/// ends with the last wrapper.
@MainActor
final class OperationRecords {
    /// A log that calls retain.
    final class Record {
        var log: OperationLog
        fileprivate var callCount = 0

        fileprivate init(_ log: OperationLog) { self.log = log }
    }

    /// The logs by the key paths to a part of the value, and in it to the status.
    fileprivate var records: [[AnyKeyPath]: Record] = [:]

    nonisolated init() {}

}

/// The operations of a value, or of a part of one: the same for each wrapper of that part.
@MainActor
struct OperationScope {
    private let records: OperationRecords
    private let path: [AnyKeyPath]

    init(_ records: OperationRecords, path: [AnyKeyPath] = []) {
        self.records = records
        self.path = path
    }

    /// Returns the operations of a part of the value.
    func scope(_ path: AnyKeyPath) -> OperationScope { OperationScope(records, path: self.path + [path]) }

    /// Begins a call in the log of a status. Each call must be ended with `endCall`.
    ///
    /// - Parameter error: the error of earlier calls, which is in the value.
    func startCall(_ status: AnyKeyPath, after error: @autoclosure () -> (any Error)?) -> OperationRecords.Record {
        let record = records.records[path + [status]] ?? OperationRecords.Record(OperationLog(after: error()))
        records.records[path + [status]] = record
        record.callCount += 1
        return record
    }

    /// Ends a call. The log is removed with its last call: its state is in the value.
    func endCall(_ record: OperationRecords.Record, _ status: AnyKeyPath) {
        record.callCount -= 1
        if record.callCount == 0 { records.records[path + [status]] = nil }
    }

    /// The number of statuses with unfinished calls, in the whole value.
    var count: Int { records.records.count }

    /// Returns the log of a status that has calls.
    func record(of status: AnyKeyPath) -> OperationRecords.Record? { records.records[path + [status]] }
}
