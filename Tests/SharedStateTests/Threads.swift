import Foundation

/// Runs `body` on several threads at once, and returns when all are done.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let group = DispatchGroup()
    for number in 0..<count {
        group.enter()
        Thread {
            body(number)
            group.leave()
        }.start()
    }
    group.wait()
}
