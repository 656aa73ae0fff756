/// Which task this is: two numbers are equal when one task asked for both while it ran.
enum CurrentTask {
    static var identity: Int { withUnsafeCurrentTask { $0?.hashValue ?? 0 } }
}
