# Reads what `PROGRAM --help` prints, for the programs beside this file.
package Help;
use strict;
use warnings;
use Exporter 'import';
our @EXPORT_OK = qw(run_help parse_help parse_commands commands_of values_of is_file write_file);

# The standard output of a command, which must succeed.
sub run_help {
  my @command = (@_, '--help');
  open my $pipe, '-|', @command or die "@command: $!\n";
  local $/;
  my $text = <$pipe>;
  close $pipe or die "@command failed\n";
  return $text;
}

# {paragraphs, usage, examples, sections => [{title, options => [{letter, name, argument, default, text}]}], notes}
# notes: the paragraphs behind the options. Lines of paragraphs that are indented are examples or tables.
sub parse_help {
  my ($text) = @_;
  my %help = (paragraphs => [], usage => '', examples => [], sections => [], notes => []);
  for my $block (split /\n[ ]*\n/, $text) {
    $block =~ s/^\n+|\n+\z//g;
    my ($title) = $block =~ /\A(\S[^\n]*):\n  +-/;
    if (defined $title) {
      push @{$help{sections}}, {title => $title, options => parse_options($block)};
    } elsif ($block =~ /\A(\S[^\n]*):?\n  \S/ && $block =~ /\ACommands/) {
      next;    # parse_commands() reads these
    } elsif ($block =~ /^(?:Usage|Examples?):[ \n]/) {
      for my $line (split /\n/, $block) {
        if ($line =~ /^Usage: +(.*)/) { $help{usage} = $1 }
        elsif ($line =~ /^(?:Examples?: +|  +)(\S.*)/) { push @{$help{examples}}, $1 }
      }
    } else {
      # Indented lines stay lines of their own; others go on.
      1 while $block =~ s/^([^ \n].*)\n(?! )/$1 /m;
      push @{@{$help{sections}} ? $help{notes} : $help{paragraphs}}, $block;
    }
  }
  return \%help;
}

sub parse_options {
  my ($block) = @_;
  my @options;
  for my $line (split /\n/, $block) {
    if ($line =~ /^  (?:-(\w) \[ )?--([\w.-]+)(?: \])?(?: ([A-Z][A-Z_-]*(?:\.\w+)?|arg)(?=\s|$))?(?: \(=(.*?)\)(?=\s|$))?(.*)$/) {
      push @options, {letter => $1, name => $2, argument => $3, default => $4, text => $5};
    } elsif (@options && $line =~ /^\s/) {
      $options[-1]{text} .= " $line";
    }
  }
  for my $option (@options) {
    $option->{text} =~ s/\s+/ /g;
    $option->{text} =~ s/^ | $//g;
  }
  return \@options;
}

# The commands that `topolet --help` lists: words ("plugin list"), and what the list says about each.
sub parse_commands {
  my ($text) = @_;
  my ($list) = $text =~ /^Commands:?\n((?:  .*\n)+)/m or die "the help lists no commands\n";
  $list =~ s/\n {3,}/  /g;
  my @commands;
  while ($list =~ /^  ([a-z][a-z-]*(?: [a-z][a-z-]*)*)(?: (.*?))? ([A-Z][a-z].*)$/mg) {
    push @commands, {words => $1, arguments => $2 // '', text => $3};
  }
  return @commands;
}

# For each command of topolet its words and its help.
sub commands_of {
  my ($topolet, $overview) = @_;
  my @commands = parse_commands($overview);
  for my $command (@commands) {
    my $help = $command->{help} = parse_help(run_help($topolet, split / /, $command->{words}));
    $help->{paragraphs}[0] //= $command->{text};
    $help->{usage} ||= join ' ', 'topolet', grep { $_ ne '' } $command->{words}, $command->{arguments} =~ s/ +$//r, '[OPTION]...';
  }
  return @commands;
}

# The words that an option takes, if its text lists them.
sub values_of {
  my ($option) = @_;
  return split /, /, $1 if $option->{text} =~ /One of: ([\w, -]+)\./;
  return ('true', 'false') if ($option->{argument} // '') eq 'BOOL';
  return $option->{text} =~ /(\w+)(?: \([^)]*\))?(?:,| or|\.)/g if ($option->{argument} // '') eq 'FORMAT';
  return ();
}

sub is_file { return ($_[0] // '') =~ /^(?:FILE|DIR|PATH|MACHINE|SOCKET)\b/ }

sub write_file {
  my ($file, $text) = @_;
  open my $out, '>', $file or die "$file: $!\n";
  print $out $text;
  close $out or die "$file: $!\n";
  return;
}

1;
