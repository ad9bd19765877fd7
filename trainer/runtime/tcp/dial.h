// A node's side of letting a connection in.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/runtime/tcp/address.h"
#include "trainer/runtime/tcp/asio.h"
#include "trainer/runtime/tcp/connection.h"
#include "trainer/runtime/tcp/handshake.h"

namespace spes::trainer {

// One try. Everything but `hello` is the same for all of a node's.
class Dial : public Connection::Owner, public std::enable_shared_from_this<Dial> {
 public:
  struct Setup {
    HostPort address;
    std::shared_ptr<TlsContext> tls;  // null: without
    std::string token;
    TcpOptions options;
    TcpScenario scenario;
    int nodes = 0;  // of the run; 0: not known
    // That has let this node in last: it comes first of those that the address has, and is enough
    // where the name is not known any more.
    std::optional<asio::ip::tcp::endpoint> known = {};
  };
  struct LetIn {
    std::shared_ptr<Connection> connection;  // its owner is still the dial
    Welcome welcome;
    std::optional<asio::ip::tcp::endpoint> endpoint;  // nothing: over a stream that was there
  };
  // Of the last address that was tried, unless one before it is of no use for good.
  struct Failure {
    std::string why;         // one line, the address included
    bool permanent = false;  // trying again is of no use
    // The coordinator itself, as far as TLS can tell, has refused.
    std::optional<RefuseCode> code = {};
    std::shared_ptr<Connection> last_words = nullptr;  // that are still to be written
  };
  using Result = std::variant<LetIn, Failure>;

  // `setup` must outlive the dial. The hello's random number and time are filled in. `done` is
  // called once, by the loop, unless the dial is abandoned.
  Dial(asio::io_context& io, const Setup& setup, Hello hello, std::function<void(Result)> done);

  void Start();
  // In place of Start: over a stream that is there already, within the same time.
  void StartOver(std::unique_ptr<Stream> stream);
  void Tick(double passed);
  void Abandon();

  // Connection::Owner.
  void OnOpen(Connection& connection) override;
  std::optional<std::uint64_t> Most(const Connection& connection, FrameType type) const override;
  void OnFrame(Connection& connection, const FrameHeader& header,
               std::string_view payload) override;
  void OnWireError(Connection& connection, const std::string& why) override;
  void OnClosed(Connection& connection, const std::string& why, bool permanent) override;

 private:
  void OnResolved(std::vector<asio::ip::tcp::endpoint> endpoints);
  void TryNext();
  std::string NoAnswer() const;
  void OnConnected();
  void OnRefuse(const Refuse& refuse);
  void Fail(const std::string& why, bool permanent = false, std::optional<RefuseCode> code = {});
  void Finish(Result result);

  asio::io_context& io_;
  const Setup& setup_;
  Hello hello_;
  std::function<void(Result)> done_;  // empty: it is over
  double rest_s_;
  double share_s_ = 0;  // of that: of the address at hand, or of looking them up
  asio::ip::tcp::resolver resolver_;
  asio::ip::tcp::socket socket_;
  std::vector<asio::ip::tcp::endpoint> endpoints_;
  std::size_t next_ = 0;
  std::optional<Failure> failure_;  // of the addresses so far, the one to report
  std::shared_ptr<Connection> connection_;
  Transcript said_;
};

}  // namespace spes::trainer
