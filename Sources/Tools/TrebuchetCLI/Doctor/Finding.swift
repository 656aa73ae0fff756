/// A problem of a server, in words.
struct Finding: Encodable, Equatable {
    enum Severity: String, Encodable, CaseIterable {
        /// Users notice it.
        case critical
        /// It can wait for the working day.
        case warning
        /// It is over, or no problem by itself.
        case note
    }

    /// The address of the admin endpoint.
    let server: String
    let severity: Severity
    /// The name of the alert rule, which also names the section of the runbooks.
    let alert: String
    let problem: String
    let remedy: String
    /// The section of the documentation.
    let runbook: String

    init(_ server: String, _ severity: Severity, _ alert: String, _ problem: String, do remedy: String) {
        self.server = server
        self.severity = severity
        self.alert = alert
        self.problem = problem
        self.remedy = remedy
        runbook = "Docs/Guides/Runbooks.md#\(alert.lowercased())"
    }
}
