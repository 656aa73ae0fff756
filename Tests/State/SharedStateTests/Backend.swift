import SharedState
import Synchronization

/// The implementation behind a ``BackendKey``: records requests and responds at the test's signal.
final class Backend<Value: Sendable>: Sendable {
    enum Answer: Sendable {
        /// When the test resumes the continuation.
        case later
        case value(Value)
        case initialValue
        case error(any Error)
    }

    struct Save: Sendable {
        var value: Value
        var context: SaveContext
        var continuation: SaveContinuation
    }

    private struct Contents: Sendable {
        var answer: Answer
        var savesAtOnce = true
        var loads: [LoadContinuation<Value>] = []
        var saves: [Save] = []
        var subscribers: [SharedSubscriber<Value>] = []
        var cancelCount = 0
        var onSave: (@Sendable (Value) -> Void)?
    }

    private let contents: Mutex<Contents>

    init(_ answer: Answer = .initialValue) { contents = Mutex(Contents(answer: answer)) }

    var key: BackendKey<Value> { BackendKey(backend: self) }
    var loads: [LoadContinuation<Value>] { contents.withLock { $0.loads } }
    var saves: [Save] { contents.withLock { $0.saves } }
    var subscribers: [SharedSubscriber<Value>] { contents.withLock { $0.subscribers } }
    var subscriber: SharedSubscriber<Value> { subscribers[0] }
    var cancelCount: Int { contents.withLock { $0.cancelCount } }

    func answer(_ answer: Answer) { contents.withLock { $0.answer = answer } }
    func holdSaves() { contents.withLock { $0.savesAtOnce = false } }
    func forgetLoads() { contents.withLock { $0.loads.removeAll() } }
    func onSave(_ body: @escaping @Sendable (Value) -> Void) { contents.withLock { $0.onSave = body } }

    fileprivate func load(_ continuation: LoadContinuation<Value>) {
        let answer = contents.withLock { contents in
            contents.loads.append(continuation)
            return contents.answer
        }
        switch answer {
        case .later: break
        case .value(let value): continuation.resume(returning: value)
        case .initialValue: continuation.resumeReturningInitialValue()
        case .error(let error): continuation.resume(throwing: error)
        }
    }

    fileprivate func save(_ save: Save) {
        let (isDone, onSave) = contents.withLock { contents in
            contents.saves.append(save)
            return (contents.savesAtOnce, contents.onSave)
        }
        onSave?(save.value)
        if isDone { save.continuation.resume() }
    }

    fileprivate func subscribe(_ subscriber: SharedSubscriber<Value>) -> SharedSubscription {
        contents.withLock { $0.subscribers.append(subscriber) }
        return SharedSubscription { self.contents.withLock { $0.cancelCount += 1 } }
    }
}

struct BackendKey<Value: Sendable>: SharedKey {
    let backend: Backend<Value>

    var id: ObjectIdentifier { ObjectIdentifier(backend) }

    func load(context: LoadContext<Value>, continuation: LoadContinuation<Value>) { backend.load(continuation) }

    func subscribe(context: LoadContext<Value>, subscriber: SharedSubscriber<Value>) -> SharedSubscription {
        backend.subscribe(subscriber)
    }

    func save(_ value: Value, context: SaveContext, continuation: SaveContinuation) {
        backend.save(Backend.Save(value: value, context: context, continuation: continuation))
    }
}

struct TestError: Error, Equatable {
    var number = 0
}
