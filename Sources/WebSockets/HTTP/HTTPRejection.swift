package import Transports

/// Why a request gets no connection: the status to answer with and what the peer's programmer should know.
package struct HTTPRejection: Error, Equatable, Sendable {
    package let status: Int
    package let reason: String
    /// Fields that the status calls for, such as `Allow` with 405.
    package var headers: HTTPHeaders

    package init(_ status: Int, _ reason: String, headers: HTTPHeaders = [:]) {
        self.status = status
        self.reason = reason
        self.headers = headers
    }

    /// The answer: the reason as a line of text, and the end of the connection.
    package var response: HTTPResponse {
        var response = HTTPResponse(status: status, text: reason)
        for field in headers.fields { response.headers.add(field.name, field.value) }
        return response
    }
}
