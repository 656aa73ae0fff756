internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What a link needs of a `URLSessionWebSocketTask`. What it calls back comes from any thread.
protocol WebSocketTask: AnyObject, Sendable {
    func begin()
    func send(_ text: String, _ done: @escaping @Sendable ((any Error)?) -> Void)
    /// Gives the next message.
    func receive(_ done: @escaping @Sendable (Result<URLSessionWebSocketTask.Message, any Error>) -> Void)
    func ping(_ done: @escaping @Sendable ((any Error)?) -> Void)
    /// Sends a close frame, and ends.
    func close()
    /// Ends at once.
    func abort()
    /// The close frame that came; 0 when there was none.
    var closing: (code: Int, reason: String) { get }
    /// The server's answer to the upgrade, once it is there.
    var answer: HTTPURLResponse? { get }
}

/// A task in a session of its own, which goes with it.
///
/// `@unchecked Sendable`: constant, and its task may be used from anywhere.
final class SessionTask: WebSocketTask, @unchecked Sendable {
    private let session: URLSession
    private let task: URLSessionWebSocketTask

    init(_ request: URLRequest, _ configuration: URLSessionConfiguration, _ link: URLSessionLink, messageSize: Int) {
        // The session holds its delegate until it is told to end.
        session = URLSession(configuration: configuration, delegate: Delegate(link), delegateQueue: nil)
        task = session.webSocketTask(with: request)
        task.maximumMessageSize = messageSize
    }

    func begin() { task.resume() }

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

    /// `@unchecked Sendable`: constant.
    private final class Delegate: NSObject, URLSessionWebSocketDelegate, @unchecked Sendable {
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
