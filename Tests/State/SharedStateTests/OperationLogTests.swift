import Testing

@testable import SharedState

struct OperationLogTests {
    enum Step: Sendable {
        case begin
        case succeed(UInt64)
        case fail(UInt64)
        case reset
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var steps: [Step]
        var pending: OperationPending
        var status: OperationStatus
        var error: Int?

        init(
            _ description: String, _ steps: [Step], _ pending: OperationPending, _ status: OperationStatus,
            error: Int? = nil
        ) {
            testDescription = description
            self.steps = steps
            self.pending = pending
            self.status = status
            self.error = error
        }

        init(_ description: String, _ steps: [Step], _ status: OperationStatus, error: Int? = nil) {
            self.init(description, steps, .newestCall, status, error: error)
        }
    }

    static let rows = [
        Row("nothing happened", [], .idle),
        Row("under way", [.begin], .pending),
        Row("a success", [.begin, .succeed(1)], .success),
        Row("a failure", [.begin, .fail(1)], .error, error: 1),
        Row("an error stays while one tries again", [.begin, .fail(1), .begin], .pending, error: 1),
        Row("a success clears the error", [.begin, .fail(1), .begin, .succeed(2)], .success),
        Row("a failure replaces the error", [.begin, .fail(1), .begin, .fail(2)], .error, error: 2),
        Row("a reset clears the error", [.begin, .fail(1), .reset], .idle),
        Row("an older success is not shown", [.begin, .begin, .succeed(1)], .pending),
        Row("an older failure is not shown", [.begin, .begin, .fail(1)], .pending),
        Row("an older failure after a newer success", [.begin, .begin, .succeed(2), .fail(1)], .success),
        Row("an older success after a newer failure", [.begin, .begin, .fail(2), .succeed(1)], .error, error: 2),
        Row("a reset detaches the call under way", [.begin, .reset, .fail(1)], .idle),
        Row("a call after a reset is shown", [.begin, .reset, .begin, .succeed(1), .fail(2)], .error, error: 2),
        Row("a detached call does not end a newer one", [.begin, .reset, .begin, .succeed(1)], .pending),
        Row("any: pending while an older call is", [.begin, .begin, .succeed(2)], .anyCall, .pending),
        Row("any: pending while a newer call is", [.begin, .begin, .succeed(1)], .anyCall, .pending),
        Row(
            "any: in the end the newest's outcome", [.begin, .begin, .fail(2), .succeed(1)], .anyCall, .error, error: 2),
        Row("any: an error shows while others are pending", [.begin, .begin, .fail(2)], .anyCall, .pending, error: 2),
        Row(
            "any: calls that a reset detached do not count", [.begin, .reset, .begin, .succeed(2)], .anyCall, .success),
    ]

    @Test("status and error follow from the calls", arguments: rows)
    func table(row: Row) {
        var log = OperationLog()
        for step in row.steps {
            switch step {
            case .begin: _ = log.startCall()
            case .succeed(let call): log.settle(call, nil, pendingWhile: row.pending)
            case .fail(let call): log.settle(call, TestError(number: Int(call)), pendingWhile: row.pending)
            case .reset: log.reset()
            }
        }
        #expect(log.status == row.status)
        #expect(log.error as? TestError == row.error.map { TestError(number: $0) })
    }
}
