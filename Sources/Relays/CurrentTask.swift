/// Which task this is: two numbers are equal when one task asked for both while it ran.
package enum CurrentTask {
    package static var identity: Int { withUnsafeCurrentTask { $0?.hashValue ?? 0 } }
}
