/// The logs of a shared value's operations; one for all its wrappers, and gone with the last.
@MainActor
final class OperationRecords {
    /// A log that calls hold on to.
    final class Record {
        var log = OperationLog()
    }

    private var records: [AnyKeyPath: Record] = [:]
    private var parts: [AnyKeyPath: OperationRecords] = [:]

    nonisolated init() {}

    func record(of status: AnyKeyPath) -> Record {
        if let record = records[status] { return record }
        let record = Record()
        records[status] = record
        return record
    }

    /// The operations of a part of the value, the same for each wrapper of that part.
    func ofPart(_ path: AnyKeyPath) -> OperationRecords {
        if let part = parts[path] { return part }
        let part = OperationRecords()
        parts[path] = part
        return part
    }
}
