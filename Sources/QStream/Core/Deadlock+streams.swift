internal import Relays

extension Deadlock {
    static func report(_ what: String) {
        report(what, "Put .dispatch() in front of the subscriber that sends, or break the circle.")
    }
}
