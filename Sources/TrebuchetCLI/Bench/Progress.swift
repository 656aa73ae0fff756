import Glibc

/// A line per second on standard error while a benchmark runs, when somebody watches.
enum Progress {
    /// Waits for `seconds`, telling how the count grows.
    static func run(seconds: Double, _ count: () -> Int) async throws {
        let isWatched = isatty(STDERR_FILENO) != 0
        var left = seconds
        var last = count()
        while left > 0 {
            let step = min(left, 1)
            try await Task.sleep(for: .seconds(step))
            left -= step
            let now = count()
            if isWatched { Console.error("\(Int((seconds - left).rounded())) s: \(Int(Double(now - last) / step))/s") }
            last = now
        }
    }
}
