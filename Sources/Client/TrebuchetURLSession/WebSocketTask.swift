internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The part of `URLSessionWebSocketTask` that a link uses. Completion handlers run on any thread.
protocol WebSocketTask: AnyObject, Sendable {
    func start()
    func send(_ text: String, _ done: @escaping @Sendable ((any Error)?) -> Void)
    /// Receives the next message.
    func receive(_ done: @escaping @Sendable (Result<URLSessionWebSocketTask.Message, any Error>) -> Void)
    func ping(_ done: @escaping @Sendable ((any Error)?) -> Void)
    /// Sends a close frame, and ends.
    func close()
    /// Ends immediately.
    func abort()
    /// The received close frame; its code is 0 without one.
    var closing: (code: Int, reason: String) { get }
    /// The server's response to the upgrade, once it has arrived.
    var answer: HTTPURLResponse? { get }
}

/// A task with its own session, which is invalidated with it.
final class SessionTask: WebSocketTask {
    private let session: URLSession
    private let task: URLSessionWebSocketTask

    init(_ request: URLRequest, _ configuration: URLSessionConfiguration, _ link: URLSessionLink, messageSize: Int) {
        // The session retains its delegate until it is invalidated.
        session = URLSession(configuration: configuration, delegate: Delegate(link), delegateQueue: nil)
        task = session.webSocketTask(with: request)
        task.maximumMessageSize = messageSize
    }

    func start() { task.resume() }

    func send(_ text: String, _ done: @escaping @Sendable ((any Error)?) -> Void) {
        task.send(.string(text), completionHandler: done)
    }

    func receive(_ done: @escaping @Sendable (Result<URLSessionWebSocketTask.Message, any Error>) -> Void) {
        task.receive(completionHandler: done)
    }

    func ping(_ done: @escaping @Sendable ((any Error)?) -> Void) { task.sendPing(pongReceiveHandler: done) }

    func close() {
        task.cancel(with: .normalClosure, reason: nil)
        session.finishTasksAndInvalidate()
    }

    func abort() { session.invalidateAndCancel() }

    var closing: (code: Int, reason: String) {
        (task.closeCode.rawValue, task.closeReason.map { String(decoding: $0, as: UTF8.self) } ?? "")
    }

    var answer: HTTPURLResponse? { task.response as? HTTPURLResponse }

    /// The delegate of the session.
    private final class Delegate: NSObject, URLSessionWebSocketDelegate, Sendable {
        private let link: URLSessionLink

        init(_ link: URLSessionLink) { self.link = link }

        func urlSession(
            _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol subprotocol: String?
        ) {
            link.didOpen(speaking: subprotocol)
        }

        func urlSession(
            _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
            didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
        ) {
            link.didEnd(nil)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            link.didEnd(error)
        }
    }
}
