import Commands

/// A line per second on standard error while a benchmark runs, when somebody watches.
enum Progress {
    /// Waits for `seconds`, telling how the count grows.
    static func run(seconds: Double, _ count: () -> Int) async throws {
        var left = seconds
        var last = count()
        while left > 0 {
            let step = min(left, 1)
            try await Task.sleep(for: .seconds(step))
            left -= step
            let now = count()
            tell("\(Int((seconds - left).rounded())) s: \(Int(Double(now - last) / step))/s")
            last = now
        }
    }

    static func tell(_ line: String) { if Console.isWatched { Console.error(line) } }
}
