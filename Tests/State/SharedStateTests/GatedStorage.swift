import Foundation
import SharedState
import Synchronization

/// Files in memory whose writes wait until the test releases them.
final class GatedStorage: FileStorage {
    private struct Contents {
        var data: Data?
        var begun: [Data] = []
        var error: TestError?
    }

    private let contents = Mutex(Contents())
    private let gate = DispatchSemaphore(value: 0)

    init(_ data: Data? = nil) { contents.withLock { $0.data = data } }

    var data: Data? { contents.withLock { $0.data } }
    /// The writes that have started.
    var begun: [Data] { contents.withLock { $0.begun } }

    func fail(with error: TestError?) { contents.withLock { $0.error = error } }
    func letThrough(_ count: Int = 1) { for _ in 0..<count { gate.signal() } }

    func read(_ file: URL) throws -> Data? {
        if let error = contents.withLock({ $0.error }) { throw error }
        return data
    }

    func replace(_ file: URL, with data: Data) throws {
        contents.withLock { $0.begun.append(data) }
        gate.wait()
        if let error = contents.withLock({ $0.error }) { throw error }
        contents.withLock { $0.data = data }
    }
}
